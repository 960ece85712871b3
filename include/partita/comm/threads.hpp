// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Ranks as threads of one process. Buffers are read in place: a rank posts pointers and its peers copy from
/// them. On device memory all ranks share one device, each with its own queue.

#include <exception>
#include <functional>
#include <thread>

#include "partita/comm/communicator.hpp"
#include "partita/comm/threads/transport.hpp"

namespace partita {

namespace threads {

namespace detail {

/// See run. A template, so that partita::compiled can have it.
template <class = void>
void run_ranks(int ranks, const std::function<void(const communicator&)>& body);

}  // namespace detail

/// Runs body(communicator) on `ranks` threads and returns when all have finished. If a rank throws, the group
/// fails: the other ranks leave their current or next operation with poisoned_error, and run rethrows the
/// first rank's exception.
inline void run(int ranks, const std::function<void(const communicator&)>& body) {
  detail::run_ranks<>(ranks, body);
}

template <class>
void detail::run_ranks(int ranks, const std::function<void(const communicator&)>& body) {
  if (ranks < 1) throw_error<mesh_error>({"a run needs at least one rank, not ", ranks});
  const auto world = std::make_shared<partita::detail::thread_world>(ranks);
  std::vector<int> everyone(static_cast<std::size_t>(ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  const auto group = std::make_shared<partita::detail::thread_group>(world, everyone);
  world->enlist(group);

  const auto rank_body = [&](int rank) {
    try {
      body(communicator(std::make_shared<partita::detail::thread_transport>(group, rank), "world"));
      world->end(rank);
    } catch (const poisoned_error&) {
      world->end(rank);
    } catch (const std::exception& e) {
      world->poison(e.what(), std::current_exception());
    } catch (...) {
      world->poison("a rank threw an object that is not a std::exception", std::current_exception());
    }
  };
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<std::size_t>(ranks) - 1);
    for (int rank = 1; rank < ranks; ++rank) others.emplace_back(rank_body, rank);
  } catch (const std::exception& e) {  // thread creation failed: release the ranks that started
    world->poison(e.what(), std::current_exception());
  }
  rank_body(0);
  for (std::thread& other : others) other.join();
  if (world->failure()) std::rethrow_exception(world->failure());
  if (world->poisoned()) throw poisoned_error(world->message());
}

}  // namespace threads

}  // namespace partita
