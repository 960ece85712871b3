// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Interface of communication backends. Virtual, so that matrices need no template parameter for their
/// communicator; the cost of the call is negligible next to a message.

#include <memory>

#include "partita/comm/device_memory.hpp"

namespace partita {

namespace comm {

/// Default of the cross-rank check of every operation: on in debug builds.
#ifdef NDEBUG
inline constexpr bool checked_by_default = false;
#else
inline constexpr bool checked_by_default = true;
#endif

/// One rank's endpoint in a group. All ranks must start the group's operations in the same order.
class transport {
 public:
  virtual ~transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts `op` and returns a token for finish. Throws communication_error if ranks disagree.
  virtual std::uint64_t start(const comm::collective& op) = 0;
  /// Waits until `op` is complete on this rank: the output is written and the input may be reused.
  virtual void finish(const comm::collective& op, std::uint64_t token) = 0;
  /// Abandons a started operation: the group fails, and the operation's memory may be freed afterwards.
  virtual void abandon(const comm::collective& op, std::uint64_t token) noexcept = 0;
  /// Operations started between these two calls may begin together, at the second; they must not include
  /// sums. Throws communication_error if that fails.
  virtual void open_together() {}
  virtual void close_together() {}
  /// Forms one group per color, ordered by key. Collective over this group; errors name `where`.
  virtual std::shared_ptr<transport> split(int color, int key, std::source_location where) = 0;
  /// This group over device memory, or over host memory if `memory` is null; groups split from it use that
  /// memory too. On device memory, finish returns when work enqueued on the queue of `memory` from then on
  /// may read the output and overwrite the input. Collective over this group.
  virtual std::shared_ptr<transport> on_memory(std::shared_ptr<comm::device_memory> memory) = 0;
  /// Throws the group's error if it has failed; for ranks waiting for something else.
  virtual void check() const {}
};

}  // namespace comm

}  // namespace partita
