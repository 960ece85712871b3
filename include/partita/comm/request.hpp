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
    if (transport_) transport_->abandon(operation_, token_);
  }

  /// Returns when the output is written and the input may be reused. Throws what the group failed with.
  void wait();
  bool pending() const { return transport_ != nullptr; }

 private:
  friend class communicator;

  /// Starts `op`, which is entered in `account` under `axis` when it has been waited for.
  request(const std::shared_ptr<transport>& ranks, std::shared_ptr<ledger> account,
          std::shared_ptr<const std::string> axis, const comm::collective& op);

  void swap(request& other) noexcept {
    std::swap(transport_, other.transport_);
    std::swap(ledger_, other.ledger_);
    std::swap(axis_, other.axis_);
    std::swap(operation_, other.operation_);
    std::swap(token_, other.token_);
    std::swap(seconds_, other.seconds_);
  }

  std::shared_ptr<transport> transport_;
  std::shared_ptr<ledger> ledger_;
  std::shared_ptr<const std::string> axis_;
  comm::collective operation_;
  std::uint64_t token_ = 0;
  double seconds_ = 0;
};

inline request::request(const std::shared_ptr<transport>& ranks, std::shared_ptr<ledger> account,
                        std::shared_ptr<const std::string> axis, const comm::collective& op)
    : ledger_(std::move(account)), axis_(std::move(axis)), operation_(op) {
  const double begin = detail::seconds_now();
  if ((op.kind == operation::broadcast || op.kind == operation::send || op.kind == operation::receive) &&
      (op.peer < 0 || op.peer >= ranks->size()))
    throw_error<communication_error>(
        {describe(op), ": there is no rank ", op.peer, " among ", ranks->size()});
  token_ = ranks->start(op);
  transport_ = ranks;
  seconds_ = detail::seconds_now() - begin;
}

inline void request::wait() {
  if (!transport_) return;
  const double begin = detail::seconds_now();
  const std::shared_ptr<transport> t = std::exchange(transport_, nullptr);
  t->finish(operation_, token_);
  if (t->size() > 1)
    ledger_->enter(operation_, *axis_, received(operation_, t->rank(), t->size()),
                   seconds_ + detail::seconds_now() - begin);
}

}  // namespace partita
