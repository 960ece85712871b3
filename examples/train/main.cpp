// SPDX-License-Identifier: Apache-2.0
/// Trains a graph neural network on a whole graph, over any number of ranks, under any partition policy, in
/// mini-batches, or with its layers over stages.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cores.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/karate.hpp"
#include "report.hpp"

namespace {

partita::io::dataset load(const command& c) {
  using partita::io::vertex_data;
  return is_built_in(c.data)
             ? partita::io::karate_club()
             : partita::io::load_dataset(
                   c.data, c.training.embedding > 0 ? vertex_data::labels : vertex_data::features_and_labels);
}

/// The ranks that a policy is for: all, or those of a stage. Throws usage_error where stages would differ.
int ranks_of_mesh(const command& c, int ranks) {
  const int stages = std::max(1, c.training.pipeline.stages);
  if (ranks % stages != 0)
    throw usage_error(std::to_string(ranks) + (ranks == 1 ? " rank is" : " ranks are") + " not " +
                      std::to_string(stages) + " stages of equally many" +
                      (c.comm == "mpi" && ranks == 1 ? "; --comm mpi is for mpirun -n N" : ""));
  return ranks / stages;
}

/// What ranks train on, and how; every rank of `world` must call, see order_vertices.
std::pair<std::optional<arrangement>, partita::io::dataset> prepared(command& c, int all_ranks,
                                                                     const partita::communicator& world) {
  const int ranks = ranks_of_mesh(c, all_ranks);
  const auto asked = [&] {
    try {
      return arrangement_of(c.policy, c.mesh, c.replication, ranks);
    } catch (const usage_error& e) {
      if (ranks == all_ranks) throw;
      throw usage_error(std::string("in a stage, ") + e.what());
    }
  }();
  partita::io::dataset data = order_vertices(load(c), c, ranks, world);
  if (c.chunk_cut == "metis") cut_chunks(data, c, asked->mesh, world);
  return {asked, std::move(data)};
}

/// What every rank does.
void train_on(const partita::communicator& world, const std::optional<arrangement>& asked,
              const partita::io::dataset& data, command c) {
  c.threads = threads_per_rank(world, c.threads);
  const bool first = world.rank() == 0;
  const observers tell =
      first && !c.quiet ? observers{print_start, progress_printer(c.training.epochs)} : observers{};
  if (first && !c.quiet && c.partition.parts > 1) print_ordering(c.partition);
  if (first && !c.quiet && c.chunk_cut == "metis") print_chunks(c, data);
  const auto train = c.device == "cuda" ? train_on_cuda : train_on_cpu;
  const partita::global_index repeated = first ? partita::io::duplicate_edges(data.edges) : 0;
  if (repeated > 0 && !c.quiet)
    std::fprintf(
        stderr, "train: %s: %lld of %zu edges repeat an earlier one, and the weights of equal edges add up\n",
        c.data.c_str(), static_cast<long long>(repeated), data.edges.size());
  const outcome run = train(world, asked, data, c, tell);
  if (!first) return;
  if (!c.quiet) print_summary(run.how.policy, world.size(), run.result);
  if (!c.json.empty()) write_json(c.json, c, world.size(), run, data, repeated);
}

/// Throws error unless a file can be written there; leaves none that was not there.
void require_writable(const std::string& path) {
  const bool existed = std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) throw partita::error("cannot write " + path);
  std::error_code ignored;  // another rank may have removed it
  if (!existed) std::filesystem::remove(path, ignored);
}

int report(const usage_error& e) {
  std::fprintf(stderr, "train: %s; train --help lists every option\n", e.what());
  return 2;
}

int run(command c, int argc, char** argv) {
  const bool over_mpi = c.comm == "mpi" || (c.comm == "nccl" && in_mpi_job());
  if (!over_mpi) refuse_separate_runs();
  if (!c.json.empty()) require_writable(c.json);
  if (over_mpi)
    return run_mpi(argc, argv, [&](const partita::communicator& world) {
      try {
        require_ranks(c.ranks, world.size());
        const auto [asked, data] = prepared(c, world.size(), world);
        train_on(world, asked, data, c);
        return 0;
      } catch (const usage_error& e) {
        return world.rank() == 0 ? report(e) : 2;
      }
    });
  const int ranks = c.ranks.value_or(std::max(1, c.training.pipeline.stages));
  const auto how = prepared(c, ranks, partita::self::world());
  // Loading a kernel late may wait for a card that waits for another rank of this process.
  if (c.comm == "nccl") ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  partita::threads::run(
      ranks, [&](const partita::communicator& world) { train_on(world, how.first, how.second, c); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(parse_command(argc, argv), argc, argv);
} catch (const usage_error& e) {
  return first_of_job() ? report(e) : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "train: %s\n", e.what());
  return 1;
}
