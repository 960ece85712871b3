// SPDX-License-Identifier: Apache-2.0
// The main of tests under mpirun: PROGRAM --ranks N. Another number of ranks than N is a failure; rank 0
// prints, others only what failed; a failure on any rank is a failure of all; a test case that a rank leaves
// early ends the job.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // mpirun ends ranks by a signal: no failure of their own
#include <iostream>
#include <sstream>

#include "partita/comm/mpi.hpp"
#include "support/honest_run.hpp"
#include "support/mpi_world.hpp"

namespace {

std::ostringstream quiet_output;

/// Other ranks may be waiting for a rank that left its test case.
struct mpi_listener : test_support::run_listener {
  using run_listener::run_listener;
  void log_assert(const doctest::AssertData& a) override {
    if (!a.m_failed || (a.m_at & doctest::assertType::is_require) == 0) return;
    left_early = std::string(a.m_file) + ":" + std::to_string(a.m_line) + ": " + a.m_expr;
  }
  void test_case_exception(const doctest::TestCaseException& e) override {
    left_early = e.error_string.c_str();
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (left_early.empty()) return;
    std::cerr << quiet_output.str() << "a test case was left early: " << left_early << std::endl;
    std::cout << std::flush;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::string left_early;
};

int registered_ranks(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string_view(argv[i]) == "--ranks") return std::atoi(argv[i + 1]);
  return 0;
}

}  // namespace

REGISTER_LISTENER("mpi_run", 0, mpi_listener);

int main(int argc, char** argv) {
  return partita::mpi::run(argc, argv, [&](const partita::communicator& world) {
    if (const int ranks = registered_ranks(argc, argv); ranks != world.size())
      throw std::runtime_error("registered with --ranks " + std::to_string(ranks) + ", launched on " +
                               std::to_string(world.size()));
    test_support::mpi_world_slot() = &world;
    doctest::Context context(argc, argv);
    if (world.rank() != 0) context.setCout(&quiet_output);
    const test_support::run_account& account = test_support::run_account::instance();
    const bool failed = context.run() != 0 || !account.honest();
    if (failed)
      std::cerr << quiet_output.str() << "FAILED on rank " << world.rank() << ": " << account.text()
                << std::endl;
    std::int32_t failures = failed ? 1 : 0;
    world.all_reduce(std::span(&failures, 1));
    return failures > 0 ? 1 : 0;
  });
}
