// SPDX-License-Identifier: Apache-2.0
/// Runs every golden case under a folder and says how far each figure is off: golden DIR --policy grid_2d
/// --ranks 6. Exit code 0 when all agree; 1 when one does not, or cannot be read; 2 when the command line is
/// wrong.

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "../ranks/program.hpp"
#include "run.hpp"

namespace {

/// Every rank must call; rank 0 prints. The number of cases that failed.
int run_cases(const partita::communicator& world, const golden_command& c,
              const std::vector<golden_case>& cases) {
  const double tolerance = c.precision == "f64" ? 1e-10 : 1e-4;
  int failed = 0;
  double worst = 0;
  const auto compare = c.device == "cuda" ? compare_on_cuda : compare_on_cpu;
  compare(world, c, cases, [&](const golden_case& g, const golden_errors& errors) {
    failed += !(errors.worst() < tolerance);
    worst = std::max(worst, errors.worst());
    if (world.rank() != 0) return;
    fmt::print("{:16} {}", g.name, errors.worst() < tolerance ? "ok    " : "FAILED");
    for (const auto& [what, error] : errors.parts) fmt::print("  {} {:.1e}", what, error);
    fmt::print("\n");
  });
  if (world.rank() == 0)
    fmt::print("golden: {} cases, {} failed, worst {:.1e}\n", cases.size(), failed, worst);
  return failed;
}

int run(int argc, char** argv) {
  golden_command c;
  CLI::App app("Compares every model with its golden cases", "golden");
  app.add_option("DIR", c.folder, "folder of golden cases")->required();
  app.add_option("--policy", c.policy, "the policy to run under")->capture_default_str();
  app.add_option("--ranks", c.ranks, "ranks (mpi: those of the job)")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--mesh", c.mesh, "ROWxCOLxDEPTH; otherwise the mesh nearest to a square or a cube");
  app.add_option("--comm", c.comm, "threads, mpi, or nccl (--device cuda; started by mpirun or not)")
      ->check(CLI::IsMember({"threads", "mpi", "nccl"}))
      ->capture_default_str();
  app.add_option("--device", c.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--precision", c.precision, "f64 (to 1e-10) or f32 (to 1e-4)")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (c.comm == "nccl" && c.device != "cuda") throw usage_error("--comm nccl needs --device cuda");
    if (c.comm == "threads") (void)arrangement_of(c.policy, c.mesh, {}, c.ranks);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }
  const rank_options how{.program = "golden", .comm = c.comm, .least_ranks = c.ranks};
  (void)how.over_mpi();
  const std::vector<golden_case> cases = read_golden_cases(c.folder);
  return run_ranks(how, argc, argv, [&](int, const partita::communicator&) -> rank_body {
    return [&](const partita::communicator& world) { return run_cases(world, c, cases) > 0 ? 1 : 0; };
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("golden", [&] { return run(argc, argv); });
}
