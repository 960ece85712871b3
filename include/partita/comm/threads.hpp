// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks as threads of one process. Buffers are read in place: a rank posts pointers and its peers copy from
/// them. On device memory all ranks share one device, each with its own queue.

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "partita/comm/communicator.hpp"
#include "partita/comm/cores.hpp"
#include "partita/comm/threads/transport.hpp"

namespace partita {

namespace threads {

struct options {
  /// Limit of one wait, none by default. Must exceed the longest computation between two operations of any
  /// rank.
  std::optional<std::chrono::milliseconds> time_limit{};
  /// Called once, on a thread of the run, if there is a time limit and some rank is still in its body one
  /// limit after the run failed. A thread cannot be ended from outside: only this function can end the
  /// process. If it is not set, or returns, run goes on waiting for the rank.
  std::function<void(const std::string& why)> if_stuck{};
  /// Whether ranks are bound to disjoint shares of the cores available to the caller, if there are at least
  /// as many cores as ranks. A rank's threads share its cores, and pages it writes first are in their local
  /// memory.
  bool pins = true;
};

/// Runs body(communicator) on `ranks` threads, including the caller's unless ranks are bound, and returns
/// when all have finished. If a rank throws, the group fails: the other ranks leave their current or next
/// operation with poisoned_error, and run rethrows the first rank's exception. A wait beyond
/// options::time_limit throws communication_error, naming the waiting rank, the missing ranks, the operation,
/// its call site and its group. A template, so that partita::compiled can provide it.
template <class = void>
void run(int ranks, const std::function<void(const communicator&)>& body, const options& o = {}) {
  if (ranks < 1) base::throw_error<mesh_error>({"a run needs at least one rank, not ", ranks});
  const auto world = std::make_shared<partita::comm::detail::thread_world>(ranks, o.time_limit);
  std::vector<int> everyone(static_cast<std::size_t>(ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  const auto group = std::make_shared<partita::comm::detail::thread_group>(world, everyone);
  world->enlist(group);

  std::atomic<bool> stuck = false;
  const comm::core_set cores = comm::usable_cores();
  const bool pins = o.pins && ranks > 1 && ranks <= comm::count(cores);
  const auto rank_body = [&](int rank) {
    std::optional<comm::bound_to> pinned;
    if (pins) pinned.emplace(comm::share_of(cores, rank, ranks));
    try {
      body(communicator(std::make_shared<partita::comm::detail::thread_transport>(group, rank), "world"));
      world->end(rank);
    } catch (const poisoned_error&) {
      world->end(rank);
    } catch (const std::exception& e) {
      world->poison(e.what(), std::current_exception());
    } catch (...) {
      world->poison("a rank threw an object that is not a std::exception", std::current_exception());
    }
    world->leave(rank);
    if (!o.time_limit || !o.if_stuck || !world->poisoned()) return;
    const std::vector<int> running = world->still_running(*o.time_limit);
    if (!running.empty() && !stuck.exchange(true))
      o.if_stuck(base::sentence_of({world->message(), "; ", partita::comm::detail::text_of_ranks(running),
                                    running.size() == 1 ? " is" : " are", " still computing ",
                                    partita::comm::detail::text_of(*o.time_limit), " later"}));
  };
  const int first = pins ? 0 : 1;  // rank 0 is the caller, whose worker threads would stay bound
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<std::size_t>(ranks - first));
    for (int rank = first; rank < ranks; ++rank) others.emplace_back(rank_body, rank);
  } catch (const std::exception& e) {  // thread creation failed: release ranks without a thread
    world->poison(e.what(), std::current_exception());
    for (int rank = static_cast<int>(others.size()) + first; rank < ranks; ++rank) world->leave(rank);
  }
  if (!pins) rank_body(0);
  for (std::thread& other : others) other.join();
  if (world->failure()) std::rethrow_exception(world->failure());
  if (world->poisoned()) throw poisoned_error(world->message());
}

}  // namespace threads

}  // namespace partita
