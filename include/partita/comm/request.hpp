// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operations that were started and are to be waited for.

#include <chrono>
#include <utility>

#include "partita/comm/ledger.hpp"
#include "partita/comm/transport.hpp"

namespace partita {

namespace detail {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace detail

namespace comm::detail {

/// What all copies of a communicator share.
struct rank_group {
  std::shared_ptr<partita::transport> ranks;
  std::shared_ptr<partita::ledger> account;
  std::string axis;  ///< under which operations are entered in the account
};

}  // namespace comm::detail

/// An operation in flight. It must be waited for; destroying it earlier (while an exception passes) fails the
/// group.
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

  /// Returns when the output is written and the input may be reused. Throws what the group failed with.
  void wait();
  bool pending() const { return group_ != nullptr; }

 private:
  friend class communicator;

  /// Starts `op`, which is entered in the account when it has been waited for.
  request(const std::shared_ptr<const comm::detail::rank_group>& group, const comm::collective& op);

  void swap(request& other) noexcept {
    group_.swap(other.group_);
    std::swap(operation_, other.operation_);
    std::swap(token_, other.token_);
    std::swap(seconds_, other.seconds_);
  }

  std::shared_ptr<const comm::detail::rank_group> group_;
  comm::collective operation_;
  std::uint64_t token_ = 0;
  double seconds_ = 0;
};

inline request::request(const std::shared_ptr<const comm::detail::rank_group>& group,
                        const comm::collective& op)
    : operation_(op) {
  transport* const ranks = group->ranks.get();
  const double begin = detail::seconds_now();
  if ((op.kind == operation::broadcast || op.kind == operation::send || op.kind == operation::receive) &&
      (op.peer < 0 || op.peer >= ranks->size()))
    throw_error<communication_error>(
        {describe(op), ": there is no rank ", op.peer, " among ", ranks->size()});
  token_ = ranks->start(op);
  group_ = group;
  seconds_ = detail::seconds_now() - begin;
}

inline void request::wait() {
  if (!group_) return;
  const double begin = detail::seconds_now();
  const std::shared_ptr<const comm::detail::rank_group> group = std::move(group_);
  transport& ranks = *group->ranks;
  ranks.finish(operation_, token_);
  if (ranks.size() > 1)
    group->account->enter(operation_, group->axis, received(operation_, ranks.rank(), ranks.size()),
                          seconds_ + detail::seconds_now() - begin);
}

}  // namespace partita
