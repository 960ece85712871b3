// SPDX-License-Identifier: Apache-2.0
#include "host_touch.hpp"

#include <csignal>
#include <cstdio>

namespace emulator {

namespace {

const device_arena* memory = nullptr;
std::mutex* guard = nullptr;
struct sigaction before;

/// The access is made again when this returns, and meets the handler before.
void explain(int, siginfo_t* info, void*) {
  ::sigaction(SIGSEGV, &before, nullptr);
  if (info->si_code <= 0) {  // sent by a process
    std::raise(SIGSEGV);
  } else if (memory->contains(info->si_addr)) {
    const std::unique_lock lock(*guard, std::try_to_lock);
    std::fprintf(stderr, "emulator: the host touches device memory%s%s\n", lock ? ": " : "",
                 lock ? memory->describe(info->si_addr).c_str() : "");
  }
}

}  // namespace

void explain_touches_of_the_host(const device_arena& arena, std::mutex& mutex) {
  memory = &arena;
  guard = &mutex;
  struct sigaction action = {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &before);
}

}  // namespace emulator
