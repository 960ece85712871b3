// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Handles of nonblocking operations.

#include <utility>

#include "partita/comm/ledger.hpp"
#include "partita/comm/transport.hpp"

namespace partita {

namespace comm::detail {

/// State shared by copies of a communicator.
struct rank_group {
  std::shared_ptr<partita::comm::transport> ranks;
  std::shared_ptr<partita::ledger> account;
  std::string axis;           ///< under which operations are recorded
  bool refuses_sums = false;  ///< whether sums of floating-point numbers throw
};

}  // namespace comm::detail

/// A nonblocking operation in flight. Must be waited for; destroying it earlier (e.g. during stack unwinding)
/// fails the group.
class request {
 public:
  request() = default;
  request(request&& other) noexcept { swap(other); }
  request& operator=(request&& other) noexcept {
    request(std::move(other)).swap(*this);
    return *this;
  }
  ~request() {
    if (group_) group_->ranks->abandon(operation_, token_);
  }

  /// Waits until the output is written and the input may be reused. If the group has failed, throws its
  /// error.
  void wait();
  bool pending() const { return group_ != nullptr; }

 private:
  friend class communicator;

  /// Starts `op`; it is recorded in the ledger when it has been waited for.
  request(const std::shared_ptr<const comm::detail::rank_group>& group, const comm::collective& op);

  void swap(request& other) noexcept {
    group_.swap(other.group_);
    std::swap(operation_, other.operation_);
    std::swap(token_, other.token_);
    std::swap(begin_, other.begin_);
    std::swap(seconds_, other.seconds_);
  }

  std::shared_ptr<const comm::detail::rank_group> group_;
  comm::collective operation_;
  std::uint64_t token_ = 0;
  double begin_ = 0, seconds_ = 0;  ///< when it was started, and how long starting took
};

inline request::request(const std::shared_ptr<const comm::detail::rank_group>& group,
                        const comm::collective& op)
    : operation_(op) {
  operation_.axis = group->axis;
  comm::transport* const ranks = group->ranks.get();
  begin_ = group->account->seconds();
  if ((op.kind == operation::broadcast || op.kind == operation::send || op.kind == operation::receive) &&
      (op.peer < 0 || op.peer >= ranks->size()))
    base::throw_error<communication_error>(
        {describe(op), ": rank ", op.peer, " is out of range for a group of ", ranks->size()});
  token_ = ranks->start(operation_);
  group_ = group;
  seconds_ = group->account->seconds() - begin_;
}

inline void request::wait() {
  if (!group_) return;
  const std::shared_ptr<const comm::detail::rank_group> group = std::move(group_);
  ledger& account = *group->account;
  const double begin = account.seconds();
  comm::transport& ranks = *group->ranks;
  ranks.finish(operation_, token_);
  if (ranks.size() == 1) return;
  const double end = account.seconds();
  const traffic v = received(operation_, ranks.rank(), ranks.size());
  account.enter(operation_, group->axis, v, seconds_ + end - begin);
  if (account.keeps_events())
    account.keep({account.phase(), operation_.kind, group->axis, begin_, begin, end,
                  v.words * static_cast<global_index>(comm::size_of(operation_.type))});
}

}  // namespace partita
