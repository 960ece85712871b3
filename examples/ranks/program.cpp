// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "arrangement.hpp"
#include "ending.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"

namespace {

int report(const std::string& program, const usage_error& e) {
  std::fprintf(stderr, "%s: %s; %s --help lists every option\n", program.c_str(), e.what(), program.c_str());
  return 2;
}
int report(const std::string& program, const std::exception& e) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence_of(e).c_str());
  return 1;
}

}  // namespace

bool rank_options::over_mpi() const {
  const bool processes = comm == "mpi" || (comm == "nccl" && in_mpi_job());
  if (!processes) refuse_separate_runs();
  return processes;
}

int run_ranks(const rank_options& how, int argc, char** argv,
              const std::function<rank_body(int, const partita::communicator&)>& prepare) {
  if (how.over_mpi())
    return run_mpi(argc, argv, how.timeout, how.native_collectives, [&](const partita::communicator& world) {
      const bool first = world.rank() == 0;
      try {
        require_ranks(how.ranks, world.size());
        return prepare(world.size(), world)(world);
      } catch (const usage_error& e) {
        return first ? report(how.program, e) : 2;
      } catch (const common_error& e) {
        return first ? report(how.program, e) : 1;
      }
    });
  const int ranks = how.ranks.value_or(std::max(1, how.least_ranks));
  const rank_body body = prepare(ranks, partita::self::world());
  // Loading a kernel late may wait for a card that waits for another rank of this process.
  if (how.comm == "nccl") ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  const auto end = [&](const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", how.program.c_str(), why.c_str());
    if (ftrylockfile(stdout) == 0) std::fflush(stdout);  // not where the rank is stuck in writing
    std::_Exit(1);
  };
  const char* const pin = std::getenv("PARTITA_PIN");
  const bool pins = pin == nullptr || std::string_view(pin) != "0";
  int code = 0;
  const auto on_rank = [&](const partita::communicator& world) {
    const int mine = body(world);
    if (world.rank() == 0) code = mine;
  };
  partita::threads::run(ranks, on_rank,
                        {.time_limit = time_limit(how.timeout), .if_stuck = end, .pins = pins});
  return code;
}

int run_program(const std::string& program, const std::function<int()>& run) try {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of writing, with a sentence
  return checked_output(program.c_str(), run());
} catch (const usage_error& e) {
  return first_of_job() ? report(program, e) : 0;
} catch (const std::exception& e) {
  return report(program, e);
}
