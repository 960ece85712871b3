// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What all NCCL groups of one rank share: a stream of its own for their operations, and a watch over those
/// that are under way.

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/nccl_call.hpp"
#include "partita/comm/transport.hpp"

namespace partita::nccl {

struct options {
  /// How long an operation may take from when it could begin, and a call that makes a group until all ranks
  /// have come.
  std::chrono::milliseconds time_limit = std::chrono::minutes(10);
  /// Whether the ranks compare every operation over the parent before it starts.
  bool checked = comm::checked_by_default;
};

namespace detail {

/// An operation under way.
struct pending_operation {
  explicit pending_operation(const partita::device_queue<cuda_device>& q) : ready(q), begun(q), done(q) {}

  comm::collective op;
  partita::comm::detail::cuda_memory_event ready;  ///< in the rank's queue: what it sends is written
  partita::comm::detail::cuda_memory_event begun;  ///< in the stream: all before it is done
  partita::comm::detail::cuda_memory_event done;   ///< in the stream
  std::optional<std::chrono::steady_clock::time_point> since;  ///< when it was seen to have begun
  bool waited_for = false;
};

/// One rank's communication stream. Used by the rank's thread alone.
class nccl_stream final : public on_cuda::queue_watcher, public std::enable_shared_from_this<nccl_stream> {
 public:
  nccl_stream(const partita::device_queue<cuda_device>& q, std::shared_ptr<transport> parent, options o)
      : queue_(q.device(), on_cuda::stream_priority::urgent),
        memory_(queue_),
        meter_(q.meter()),
        parent_(std::move(parent)),
        options_(o) {}
  ~nccl_stream() override { meter_->remove(scratch_.size()); }

  cudaStream_t get() const { return queue_.stream(); }
  const comm::device_memory& memory() const { return memory_; }
  const options& settings() const { return options_; }

  /// Memory for one operation, counted with the rank's own: the next one may overwrite it.
  std::byte* scratch(std::size_t bytes) {
    if (bytes > scratch_.size()) {
      meter_->remove(scratch_.size());
      scratch_ = buffer<std::byte, cuda_device>(queue_, bytes);
      meter_->add(bytes);
    }
    return scratch_.data();
  }

  /// A communicator that call(slot) makes, asking `asked` how far that is, or the new one where it is null.
  template <class Call>
  std::shared_ptr<owned_comm> make(const char* name, const owned_comm* asked, Call call) {
    const auto made = std::make_shared<owned_comm>(options_.time_limit, [weak = weak_from_this()] {
      if (const auto all = weak.lock())
        all->give_up("a group of ranks over NCCL ended while it waited for others");
    });
    const auto what = [name] { return std::string(name); };
    const on_cuda::device_guard guard(queue_.device());
    ncclResult_t code = call(made->slot());
    // A split that goes on answers success all the same: the communicator that was asked knows.
    if (asked != nullptr && code == ncclSuccess) code = asked->progress();
    settle(asked != nullptr ? *asked : *made, code, what);
    if (made->get() == nullptr) return nullptr;
    if (asked != nullptr) settle(*made, made->progress(), what);
    std::erase_if(comms_, [](const auto& c) { return c.expired(); });
    comms_.push_back(made);
    return made;
  }

  /// Returns when a call that answered `code` is no longer in progress. Fails all groups of this rank, naming
  /// what() when it failed or takes longer than it may.
  template <class What>
  void settle(const owned_comm& comm, ncclResult_t code, What what) {
    const auto last = std::chrono::steady_clock::now() + options_.time_limit;
    while (code == ncclInProgress) {
      check_parent();
      if (std::chrono::steady_clock::now() > last)
        fail(what() + " waits for other ranks for more than " + text_of(options_.time_limit));
      std::this_thread::yield();
      code = comm.progress();
    }
    if (code != ncclSuccess) fail(what() + " failed: " + comm.why(code));
  }

  /// Makes the stream wait for what `memory` was given so far. Close it when the operation is enqueued.
  pending_operation& open(const comm::collective& op, const comm::device_memory& memory) {
    retire();
    if (spare_.empty()) spare_.push_back(std::make_unique<pending_operation>(queue_));
    pending_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    pending_operation& pending = *pending_.back();
    pending.op = op;
    pending.since.reset();
    pending.waited_for = false;
    memory.record(pending.ready);
    memory_.wait_on(pending.ready);
    memory_.record(pending.begun);
    return pending;
  }
  void close(pending_operation& pending) { memory_.record(pending.done); }

  /// Returns when all operations of this rank are complete. Throws as check does.
  void drain() {
    for (check(); !pending_.empty() && !pending_.back()->done.event.reached(); check())
      std::this_thread::yield();
  }

  void require_alive() const {
    if (!failure_.empty()) throw communication_error(failure_);
  }
  /// Ends all operations of this rank; from now on every one throws this.
  [[noreturn]] void fail(const std::string& why) {
    give_up(why);
    throw communication_error(failure_);
  }
  void give_up(const std::string& why) noexcept {
    if (failure_.empty()) failure_ = why;
    for (const auto& c : comms_)
      if (const auto alive = c.lock()) alive->give_up();
    comms_.clear();
  }

  /// Throws when an operation failed, takes too long, or the parent failed.
  void check() override {
    require_alive();
    check_parent();
    retire();
    const auto late = std::find_if(pending_.begin(), pending_.end(),
                                   [](const auto& pending) { return !pending->done.event.reached(); });
    for (const auto& c : comms_)
      if (const auto alive = c.lock())
        if (const ncclResult_t code = alive->progress(); code != ncclSuccess && code != ncclInProgress)
          fail((late == pending_.end() ? "an operation" : describe((*late)->op)) +
               " over NCCL failed: " + alive->why(code));
    if (late != pending_.end()) check_time(**late);
  }

 private:
  void check_parent() {
    try {
      parent_->check();
    } catch (const std::exception& e) {
      give_up(e.what());
      throw;
    }
  }
  void check_time(pending_operation& pending) {
    const auto now = std::chrono::steady_clock::now();
    if (!pending.begun.event.reached()) return;
    if (!pending.since) pending.since = now;
    if (now - *pending.since > options_.time_limit)
      fail(describe(pending.op) + " over NCCL is not complete after " + text_of(options_.time_limit));
  }
  /// Takes back what is complete: a stream completes its operations in order.
  void retire() {
    for (auto pending = pending_.begin(); pending != pending_.end() && (*pending)->done.event.reached();) {
      if ((*pending)->waited_for) {
        spare_.push_back(std::move(*pending));
        pending = pending_.erase(pending);
      } else {
        ++pending;
      }
    }
  }

  partita::device_queue<cuda_device> queue_;
  comm::cuda_memory memory_;
  std::shared_ptr<memory_meter> meter_;
  std::shared_ptr<transport> parent_;
  options options_;
  buffer<std::byte, cuda_device> scratch_;
  std::vector<std::weak_ptr<owned_comm>> comms_;
  std::vector<std::unique_ptr<pending_operation>> pending_, spare_;
  std::string failure_;
};

}  // namespace detail

}  // namespace partita::nccl
