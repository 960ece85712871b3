// SPDX-License-Identifier: Apache-2.0
/// Trains a graph neural network on a whole graph, over any number of ranks, under any partition policy, in
/// mini-batches, or with its layers over stages.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "../ranks/command_line.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/files.hpp"
#include "../ranks/precision.hpp"
#include "../ranks/program.hpp"
#include "checks.hpp"
#include "complete.hpp"
#include "input.hpp"
#include "ordering.hpp"
#include "partita/base/system.hpp"
#include "partita/graph/duplicate_edges.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/train/summary.hpp"
#include "process.hpp"
#include "report.hpp"
#include "trace.hpp"

namespace {

/// The ranks that a policy is for: all, or those of a stage. Throws usage_error where stages would differ.
int ranks_of_mesh(const command& c, int ranks) {
  const int stages = std::max(1, c.training.pipeline.stages);
  refuse_if(ranks % stages != 0, "{} {} not {} stages of equally many{}", ranks,
            ranks == 1 ? "rank is" : "ranks are", stages,
            c.comm == "mpi" && ranks == 1 ? "; --comm mpi is for mpirun -n N" : "");
  return ranks / stages;
}

/// What ranks train on, and how.
struct preparation {
  std::optional<arrangement> asked;
  io::dataset data;
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

/// The data, checked and in the order that is asked for. Every
/// rank of `world` must call, see order_vertices.
io::dataset in_order(io::dataset data, command& c, const std::optional<arrangement>& asked, int all_ranks,
                     const partita::communicator& world) {
  require_same_input(c, data, world);
  require_bounds(c, data, all_ranks);
  take_loss(c, data);
  data = order_vertices(std::move(data), c, ranks_of_mesh(c, all_ranks), world);
  if (c.cuts_chunks()) cut_chunks(data, c, asked->mesh, world);
  return data;
}

/// Edges that repeat another one, counted after training, when lists of the set-up are gone; -1 where the
/// data has changed since. Every rank must call.
partita::global_index duplicate_edges(const partita::communicator& world, const io::dataset& data,
                                      const command& c) {
  const auto changed = io::changed_file();
  if (world.all_reduce(static_cast<int>(changed.has_value()), partita::reduction::max) == 0)
    return partita::graph::duplicate_edges(
        world, data,
        {.threads = *c.threads, .memory = partita::local::list_allocator<std::byte>(c.far_store)});
  if (world.rank() == 0)
    fmt::print(stderr, "train: {} has changed since training began; repeated edges are not counted\n",
               changed.value_or("the data of another rank"));
  return -1;
}

/// What every rank does; returns its exit code.
int train_on(const partita::communicator& ranks, const preparation& from, command c) {
  const io::dataset& data = from.data;
  const partita::communicator world = c.machine ? partita::emulated::cluster(ranks, *c.machine) : ranks;
  if (c.machine) c.threads = 1;
  c.threads = threads_per_rank(world, c.threads);
  const bool first = world.rank() == 0, tells = first && !c.quiet, is_told = !c.quiet || !c.json.empty();
  const bool times = !c.trace.empty() || !c.page.empty();
  if (times) world.ledger().keep_events(most_events);
  if (tells) {
    print_cuts(c, data);
    if (const std::string assumed = c.machine ? c.machine->assumption(world.size()) : ""; !assumed.empty())
      fmt::print(stderr, "train: {}\n", assumed);
    world.ledger().observe(work_printer({"distributing", "million entries", 1e6}, world.size()));
  }
  const std::vector<std::string> notes = is_told ? notes_on(world, data, c) : std::vector<std::string>();
  if (tells) print_notes(c, notes);
  const auto train = c.device == "cuda" ? train_on_cuda : train_on_cpu;
  outcome run = train({world, from.asked, data, c, tells ? printers(c, data.task) : observers()});
  const auto events = times ? events_of_ranks(world) : std::vector<std::vector<partita::comm::event>>();
  run.peak_rss_bytes =
      nn::summarize(world, static_cast<partita::global_index>(partita::base::system::peak_resident_bytes()));
  if (c.comm == "threads") run.peak_rss_bytes.total = run.peak_rss_bytes.max_rank;  // one process
  run.read_seconds = from.seconds;
  run.notes = notes;
  if (is_told) {
    run.duplicate_edges = duplicate_edges(world, data, c);
    const auto repeated = notes_on_repeated(run.duplicate_edges, data, c);
    if (tells) print_notes(c, repeated);
    for (const auto& more : {notes_on_mesh(c, run.how.mesh), repeated})
      run.notes.insert(run.notes.end(), more.begin(), more.end());
  }
  // Where a signal has ended training, and no checkpoint goes on from there: as of a process that it ends.
  const bool lost = run.result.stopped && c.checkpoint.folder.empty();
  const int code = lost ? 128 + world.all_reduce(ending_signal.load(), partita::reduction::max) : 0;
  if (!first) return code;
  print_end(c, world.size(), run, data);
  if (!c.json.empty()) write_json(c.json, c, world.size(), run, data);
  if (!c.trace.empty()) write_trace(c.trace, events);
  if (!c.page.empty()) write_page(c.page, c, run, data, events);
  return code;
}

/// Makes a folder that an option names, where it is not there.
void make_folder(const std::string& folder) {
  std::error_code status;
  std::filesystem::create_directories(folder, status);
  if (status) throw partita::error("cannot make " + folder + ": " + status.message());
}

/// A file in the folder of checkpoints that nobody has, to see if one can be written.
std::string writable_test_in(const std::string& folder) {
  make_folder(folder);
  return (std::filesystem::path(folder) / ".partita-unfinished-test").string();
}

}  // namespace

int main(int argc, char** argv) {
  give_back_large_blocks();
  return run_program("train", [&] {
    command c = parse_command(
        argc, argv,
        {.purpose = "Trains a graph neural network over any number of ranks, on a whole graph under any "
                    "partition policy, in\n"
                    "mini-batches, or with its layers over stages."});
    require_precision(c.precision);
    const bool native = c.mpi_collectives == "native";
    const rank_options how{"train", c.comm, c.ranks, c.training.pipeline.stages, c.timeout, native};
    (void)how.over_mpi();
    for (const std::string& path : {c.json, c.page, c.trace, c.save, c.save_logits, c.save_hidden})
      require_writable(path);
    if (!c.checkpoint.folder.empty()) require_writable(writable_test_in(c.checkpoint.folder));
    if (!c.far.empty() && c.device == "cpu") {
      make_folder(c.far);
      c.far_store = std::make_shared<partita::mapped_store>(c.far);
    }
    return run_ranks(how, argc, argv, [&](int ranks, const partita::communicator& world) -> rank_body {
      io::end_when_files_change("train");
      const auto begin = std::chrono::steady_clock::now();
      const auto from = std::make_shared<preparation>();
      from->asked = asked_for(c, ranks);
      from->data = in_order(read_input(c, world), c, from->asked, ranks, world);
      from->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      stop_on_signals();
      return [from, &c](const partita::communicator& all) { return train_on(all, *from, c); };
    });
  });
}
