// SPDX-License-Identifier: Apache-2.0
#pragma once
/// This process: its memory, and the signals that ask training to end after an epoch.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

/// From 8 MiB on, what is freed goes back to the system at once. Otherwise glibc raises that bound with each
/// large block that is freed, and lists of the set-up stay in memory while epochs need theirs.
inline void give_back_large_blocks() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
#endif
}

/// What has been freed goes back to the system: of lists of the set-up, holes would stay that are too small
/// for what epochs need.
inline void give_back_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

/// What this process may have at most, in bytes.
inline double memory_of_machine() {
  const double there =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return there;
  return std::min(there, static_cast<double>(limit.rlim_cur));
}

/// The first signal that has asked this process to end training, or 0.
inline std::atomic<int> ending_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" inline void ask_for_the_end(int signal) {
  if (ending_signal.exchange(signal) == 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// From now on SIGTERM and SIGINT ask training to end after the epoch; a second one ends the process.
inline void stop_on_signals() {
  std::signal(SIGTERM, ask_for_the_end);
  std::signal(SIGINT, ask_for_the_end);
}
