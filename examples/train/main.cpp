// SPDX-License-Identifier: Apache-2.0
/// Trains a graph neural network on a whole graph, over any number of ranks, under any partition policy, in
/// mini-batches, or with its layers over stages.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sys/resource.h>
#include <utility>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../ranks/command_line.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/precision.hpp"
#include "../ranks/program.hpp"
#include "bounds.hpp"
#include "checkpoints.hpp"
#include "notes.hpp"
#include "partita/graph/duplicate_edges.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/karate.hpp"
#include "partita/io/npy.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/train/fields.hpp"
#include "partita/train/objective.hpp"
#include "partita/train/summary.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace {

/// From 8 MiB on, what is freed goes back to the system at once. Otherwise glibc raises that bound with each
/// large block that is freed, and lists of the set-up stay in memory while epochs need theirs.
void give_back_large_blocks() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
#endif
}

/// Every rank of `world` must call; each checks its share.
partita::io::dataset load(const command& c, const partita::communicator& world) {
  using partita::io::vertex_data;
  if (is_built_in(c.data)) {
    if (!c.task.empty() && c.task != "classes" && c.task != "links")
      throw usage_error("--data karate is for --task classes and links, not " + c.task);
    return partita::io::karate_club();
  }
  const vertex_data wanted = c.training.embedding > 0 ? vertex_data::labels
                             : c.task == "links"      ? vertex_data::features
                                                      : vertex_data::features_and_labels;
  const bool tells = world.rank() == 0 && !c.quiet;
  return partita::io::load_dataset(c.data, wanted, world, cores_per_rank(world), 0,
                                   tells ? work_printer({"reading", "MB", 1e6}) : partita::comm::progress(),
                                   c.unpack_limit, task_named(c.task));
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

/// What ranks train on, and how.
struct preparation {
  std::optional<arrangement> asked;
  partita::io::dataset data;
  double seconds = 0;  ///< to read the data and to sort its vertices
};

/// What --policy and --mesh ask for; nothing for auto. Throws usage_error.
std::optional<arrangement> asked_for(const command& c, int all_ranks) {
  const int ranks = ranks_of_mesh(c, all_ranks);
  try {
    if (c.mesh != "auto") return arrangement_of(c.policy, c.mesh, c.replication, ranks);
    (void)arrangement_of(c.policy, {}, {}, ranks);
    return {};
  } catch (const usage_error& e) {
    if (ranks == all_ranks) throw;
    throw usage_error(std::string("in a stage, ") + e.what());
  }
}

/// The options of the loss, for the task of the data. Throws usage_error for those that it has no use for.
void take_loss(command& c, const partita::io::dataset& data) try {
  namespace nn = partita::nn;
  nn::training_options& t = c.training;
  const nn::field& weights = *std::ranges::find(nn::fields, "class-weights", &nn::field::name);
  if (c.class_weights == "balanced")
    t.class_weights = nn::balanced_class_weights(data);
  else if (!c.class_weights.empty() && !nn::take(weights, t, c.class_weights)) {
    if (c.class_weights.find(',') != c.class_weights.npos && !std::filesystem::exists(c.class_weights))
      throw usage_error("--class-weights " + c.class_weights + " are not numbers of 0 or more");
    t.class_weights = partita::io::read_npy<double>(c.class_weights).values;
  }
  nn::require_loss(data, t);
} catch (const partita::error& e) {
  throw usage_error(e.what());
}

/// The data, without links where these are to be predicted, checked and in the order that is asked for. Every
/// rank of `world` must call, see order_vertices.
partita::io::dataset in_order(partita::io::dataset data, command& c, const std::optional<arrangement>& asked,
                              int all_ranks, const partita::communicator& world) {
  if (const partita::nn::link_options& links = c.training.links; links.width > 0)
    data = partita::graph::split_links(std::move(data), {.validation = links.held_out.front(),
                                                         .test = links.held_out.back(),
                                                         .columns = links.width,
                                                         .seed = c.training.seed});
  require_same_input(c, data, world);
  require_bounds(c, data, all_ranks);
  take_loss(c, data);
  data = order_vertices(std::move(data), c, ranks_of_mesh(c, all_ranks), world);
  if (c.training.pipeline.cut == partita::nn::chunk_cut::partitioned) cut_chunks(data, c, asked->mesh, world);
  return data;
}

/// The most memory that this process had at a time, in bytes.
partita::global_index peak_rss() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return partita::global_index{1024} * usage.ru_maxrss;
}

/// Edges that repeat another one, counted after training, when lists of the set-up are gone; -1 where the
/// data has changed since. Every rank must call.
partita::global_index duplicate_edges(const partita::communicator& world, const partita::io::dataset& data,
                                      const command& c) {
  const auto changed = partita::io::changed_file();
  if (world.all_reduce(static_cast<int>(changed.has_value()), partita::reduction::max) == 0)
    return partita::graph::duplicate_edges(
        world, data,
        {.threads = *c.threads, .memory = partita::local::list_allocator<std::byte>(c.far_store)});
  if (world.rank() == 0)
    std::fprintf(stderr, "train: %s has changed since training began; repeated edges are not counted\n",
                 changed.value_or("the data of another rank").c_str());
  return -1;
}

/// Where a signal has ended training, and no checkpoint goes on from there, the exit code of a process that
/// it ends; otherwise 0. Every rank must call.
int code_of(const partita::communicator& world, const command& c,
            const partita::nn::training_result& result) {
  if (!result.stopped || !c.checkpoint.folder.empty()) return 0;
  return 128 + world.all_reduce(ending_signal(), partita::reduction::max);
}

/// What every rank does; returns its exit code.
int train_on(const partita::communicator& world, const preparation& from, command c) {
  const partita::io::dataset& data = from.data;
  c.threads = threads_per_rank(world, c.threads);
  const bool first = world.rank() == 0;
  const observers tell =
      first && !c.quiet
          ? observers{print_start, progress_printer(c.training.epochs, data.task), print_forecast}
          : observers{};
  if (first && !c.quiet && c.partition.parts > 1) print_ordering(c.partition);
  if (first && !c.quiet && c.training.pipeline.cut == partita::nn::chunk_cut::partitioned)
    print_chunks(c, data);
  if (first && !c.quiet)
    world.ledger().observe(work_printer({"distributing", "million entries", 1e6}, world.size()));
  const std::vector<std::string> notes =
      c.quiet && c.json.empty() ? std::vector<std::string>() : notes_on(world, data, c);
  for (const std::string& note : notes)
    if (first && !c.quiet) std::fprintf(stderr, "train: %s: %s\n", c.data.c_str(), note.c_str());
  const auto train = c.device == "cuda" ? train_on_cuda : train_on_cpu;
  outcome run = train(world, from.asked, data, c, tell);
  run.peak_rss_bytes = partita::nn::summarize(world, peak_rss());
  if (c.comm == "threads") run.peak_rss_bytes.total = run.peak_rss_bytes.max_rank;  // one process
  if (!c.quiet || !c.json.empty()) run.duplicate_edges = duplicate_edges(world, data, c);
  run.read_seconds = from.seconds;
  run.notes = notes;
  if (first && run.duplicate_edges > 0 && !c.quiet)
    std::fprintf(stderr, "train: %s: %lld of %zu edges repeat an earlier one, and %s\n", c.data.c_str(),
                 static_cast<long long>(run.duplicate_edges), data.edges.size(),
                 uses_weights(c.training) ? "the weights of equal edges add up" : "equal edges count once");
  const int code = code_of(world, c, run.result);
  if (!first) return code;
  if (run.result.stopped) print_stop(c, run.result);
  if (!c.quiet && run.result.resumed_from < std::ssize(run.result.epochs))
    print_summary(run.how.policy, world.size(), run.result, data.task);
  if (!c.json.empty()) write_json(c.json, c, world.size(), run, data);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  give_back_large_blocks();
  return run_program("train", [&] {
    command c = parse_command(argc, argv);
    require_precision(c.precision);
    const rank_options how{"train", c.comm, c.ranks, c.training.pipeline.stages, c.timeout};
    (void)how.over_mpi();
    for (const std::string& path : {c.json, c.save, c.save_logits, c.save_embeddings}) require_writable(path);
    if (!c.checkpoint.folder.empty()) require_writable(writable_test_in(c.checkpoint.folder));
    if (!c.far.empty() && c.device == "cpu") c.far_store = std::make_shared<partita::mapped_store>(c.far);
    return run_ranks(how, argc, argv, [&](int ranks, const partita::communicator& world) -> rank_body {
      partita::io::end_when_files_change("train");
      const auto begin = std::chrono::steady_clock::now();
      const auto from = std::make_shared<preparation>();
      from->asked = asked_for(c, ranks);
      from->data = in_order(load(c, world), c, from->asked, ranks, world);
      from->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      stop_on_signals();
      return [from, &c](const partita::communicator& all) { return train_on(all, *from, c); };
    });
  });
}
