// SPDX-License-Identifier: Apache-2.0
/// SpMM, GEMM and redistribution over ranks, for every policy, mesh, graph and width f:
///
///   spmm/POLICY/MESH/GRAPH/f   gemm/POLICY/MESH/n/f   enter/POLICY/MESH/n/f   leave/POLICY/MESH/n/f
///
/// gemm multiplies n x f by f x 16; enter redistributes n x f from vertex_rows to the policy's dense layout,
/// leave does the reverse. Without --benchmark_filter a default set runs for half a minute, on the mesh
/// closest to square for each policy. Options: --matrix FILE (in place of made graphs), --width f,f,...,
/// --ranks N, --scale S (graphs of 2^S vertices), --comm threads|mpi, --device cpu|cuda; with PARTITA_DATA in
/// the environment and without --matrix also Cora.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "support/dataset_graph.hpp"
#include "support/instructions.hpp"
#include "support/options.hpp"
#include "support/partition_cases.hpp"
#ifdef PARTITA_WITH_MPI
#include "partita/comm/mpi.hpp"
#endif

namespace {

using namespace partita;

bench::command command_of(int argc, char** argv) {
  bench::command c;
  CLI::App app("Products and redistributions over ranks, for every policy, mesh, graph and width.",
               "partition");
  bench::add_choice(app, "--device", c.device, {"cpu", "cuda"}, "where the ranks compute");
  bench::add_choice(app, "--comm", c.comm, {"threads", "mpi"}, "what the ranks are");
  bench::add_number(app, "--ranks", c.ranks, 1, 64, "ranks that are threads");
  bench::add_number(app, "--scale", c.scale, 4, 24, "the made graphs have 2^N vertices");
  app.add_option(
         "--graph,--matrix", c.matrix,
         "a square matrix or a graph of your own in place of them, in any\nformat that convert reads; an "
         "edge u -> v is the entry (u, v)")
      ->option_text("FILE");
  app.add_option("--width", c.widths, "columns of X (default 32,128; with a filter 16,32,64,128,256)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N,N,...");
  app.footer(
      "And the flags of Google Benchmark, such as --benchmark_filter=REGEX and --benchmark_list_tests.");
  app.allow_extras();
  bench::parse(app, argc, argv);
  c.rest = app.remaining();
  c.everything = std::getenv("BENCHMARK_FILTER") != nullptr ||
                 std::ranges::any_of(
                     c.rest, [](const std::string& flag) { return flag.starts_with("--benchmark_filter"); });
  if (c.widths.empty()) c.widths = c.everything ? std::vector{16, 32, 64, 128, 256} : std::vector{32, 128};
  c.rest.insert(c.rest.begin(), {argv[0], "--benchmark_min_time=0.05"});  // a later flag prevails
  return c;
}

/// For the ranks of an MPI job other than the first.
struct silent_reporter : benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

std::vector<bench::graph> graphs_of(const bench::command& command) {
  if (!command.matrix.empty()) return {bench::matrix_file(command.matrix)};
  std::vector<bench::graph> graphs{bench::rmat(command.scale), bench::banded(command.scale)};
  if (const char* data = std::getenv("PARTITA_DATA"))
    if (const auto cora = std::filesystem::path(data) / "cora"; is_directory(cora))
      graphs.push_back(bench::dataset_graph(cora));
  return graphs;
}

int run(bench::command command, bench::launcher launcher, bool first) {
  std::vector<char*> arguments;
  for (std::string& argument : command.rest)
    if (first || argument.rfind("--benchmark_out", 0) != 0) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  const std::vector<bench::graph> graphs = graphs_of(command);
  const auto add = command.device == "cuda" ? bench::add_cuda_benchmarks : bench::add_cpu_benchmarks;
  const std::shared_ptr<void> registered = add(launcher, command, graphs);

  silent_reporter silent;
  const std::size_t done =
      first ? benchmark::RunSpecifiedBenchmarks() : benchmark::RunSpecifiedBenchmarks(&silent);
  return done > 0 && launcher.skipped() == 0 ? 0 : 1;
}

int run_mpi([[maybe_unused]] int argc, [[maybe_unused]] char** argv,
            [[maybe_unused]] bench::command command) {
#ifdef PARTITA_WITH_MPI
  return mpi::run(argc, argv, [&](const communicator& world) {
    command.ranks = world.size();
    for (const std::string& argument : command.rest)
      if (argument.rfind("--benchmark_enable_random_interleaving", 0) == 0)
        throw error("random interleaving would give every rank of a job another order of benchmarks");
    return run(command, bench::launcher(world), world.rank() == 0);
  });
#else
  throw error("this program was built without MPI");
#endif
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::command command = command_of(argc, argv);
  bench::print_instructions();
  return command.comm == "mpi" ? run_mpi(argc, argv, command) : run(command, bench::launcher(), true);
} catch (const std::exception& e) {
  std::fprintf(stderr, "partition: %s\n", e.what());
  return 2;
}
