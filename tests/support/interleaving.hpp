// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every interleaving of a small program of threads, with few preemptions (iterative context bounding:
// Musuvathi and Qadeer, PLDI 2007, section 3). One thread runs at a time. Before each lock, wait and
// notification, after each unlock, and where a thread has to wait or ends, a choice is made who runs on. A
// schedule is a list of such choices; the next one differs in the last choice that has another alternative.
//
// Between two such points the ranks of comm/threads touch at most one thing that is shared and not locked (an
// atomic of the world, memory of a peer), hence points elsewhere would add nothing. What is found are
// interleavings, not what weaker orders of memory allow: that is left to the thread sanitizer.
//
// A program that links interleaving.cpp has one thread: pthread_create makes a strand, a stack of its own
// that is switched to, and locks and conditions are those of the scheduler. Hence std::thread, std::mutex,
// std::condition_variable and what uses them are explored as they are, and a schedule takes microseconds.
// thread_local variables are shared; signals to one waiting thread are not explored.

#include <functional>
#include <map>
#include <string>

namespace test_support {

/// What may happen in a schedule besides switches from threads that cannot go on, which are free.
struct schedule_limits {
  /// Switches from a thread that could have gone on, and waits that end by time while any thread could go on.
  /// Where none can, the time of a wait ends for nothing: the clock stands still otherwise.
  int preemptions = 2;
  /// A seeded fault: the notification of this number in each schedule is lost.
  long lost_notification = 0;
};

/// What was found. Schedules are counted from 1.
struct exploration {
  long schedules = 0;
  long longest = 0;        ///< points at which threads could be switched, in the longest schedule
  long notifications = 0;  ///< the most in a schedule
  std::map<std::string, long> outcomes;  ///< what body returned, in how many schedules
  long deadlock = 0;                     ///< the schedule that ended in one, which ends the exploration
  std::string stuck;                     ///< what its threads waited for
  long kept_memory = 0;  ///< the first schedule that did not give back all memory of operator new
};

/// Runs body once per schedule; it must do the same whenever the same choices are made. It may have three
/// threads besides its own.
exploration explore(const schedule_limits& limits, const std::function<std::string()>& body);

}  // namespace test_support
