// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What carries the operations of a communicator: start one, finish it, split. One virtual call costs
/// nothing beside a message, and it keeps matrices free of a template parameter for their communicator.

#include <memory>

#include "partita/comm/device_memory.hpp"

namespace partita {

namespace comm {

/// Whether communicators that can compare every operation between the ranks do, unless they are asked: in
/// debug builds.
#ifdef NDEBUG
inline constexpr bool checked_by_default = false;
#else
inline constexpr bool checked_by_default = true;
#endif

}  // namespace comm

/// One rank's end of a group of ranks. Operations of a group are started in the same order by all its ranks.
class transport {
 public:
  virtual ~transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts `op` and returns a token for finish. Throws communication_error on a mismatch between ranks.
  virtual std::uint64_t start(const comm::collective& op) = 0;
  /// Waits until `op` is complete here: its output is written, its input may be reused.
  virtual void finish(const comm::collective& op, std::uint64_t token) = 0;
  /// Gives up an operation that was started and will not be finished: the group fails, and the memory may be
  /// freed.
  virtual void abandon(const comm::collective& op, std::uint64_t token) noexcept = 0;
  /// Ranks with the same color form a group, ordered by key. Every rank of this group must call; errors say
  /// `where`.
  virtual std::shared_ptr<transport> split(int color, int key, std::source_location where) = 0;
  /// This group for memory of a device, or of the host where `memory` is null; what is split from it is for
  /// that memory too. There, finish returns when the output is written, and the input may be reused, by work
  /// given to the queue of `memory` from then on. Every rank of this group must call.
  virtual std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) = 0;
  /// Throws what the group has failed with, if it has: for ranks that wait for something else.
  virtual void check() const {}
};

}  // namespace partita
