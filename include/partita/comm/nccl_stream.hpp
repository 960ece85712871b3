// SPDX-License-Identifier: Apache-2.0
#pragma once
/// State shared by all NCCL groups of one rank: the communication stream and the watchdog for operations in
/// flight.

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/nccl_call.hpp"
#include "partita/comm/transport.hpp"

namespace partita::nccl {

/// Options of nccl::world().
struct options {
  /// Time limit of an operation, from when it could begin, and for creating a group, until all ranks have
  /// joined. NCCL does not tell which ranks are absent.
  std::chrono::milliseconds time_limit = std::chrono::minutes(10);
  /// Whether ranks compare every operation over the parent before it starts.
  bool checked = comm::checked_by_default;
};

namespace detail {

/// An operation in flight.
struct pending_operation {
  explicit pending_operation(const partita::device_queue<cuda_device>& q) : ready(q), begun(q), done(q) {}

  comm::collective op;
  std::string axis;                                ///< of the group: that of `op` may be gone
  partita::comm::detail::cuda_memory_event ready;  ///< in the rank's queue: the send buffer is ready
  partita::comm::detail::cuda_memory_event begun;  ///< in the stream: earlier operations have completed
  partita::comm::detail::cuda_memory_event done;   ///< in the stream
  std::optional<std::chrono::steady_clock::time_point> since;  ///< when it was first observed to have begun
  bool waited_for = false;
};

/// One rank's communication stream. Used only by that rank's thread.
class nccl_stream final : public on_cuda::queue_watcher, public std::enable_shared_from_this<nccl_stream> {
 public:
  nccl_stream(const partita::device_queue<cuda_device>& q, std::shared_ptr<comm::transport> parent, options o)
      : queue_(q.device(), on_cuda::stream_priority::urgent),
        memory_(queue_),
        meter_(q.meter()),
        parent_(std::move(parent)),
        options_(o) {}
  ~nccl_stream() override { meter_->remove(scratch_.size()); }

  cudaStream_t get() const { return queue_.stream(); }
  const comm::device_memory& memory() const { return memory_; }
  const options& settings() const { return options_; }

  /// Scratch memory for one operation, counted in the rank's meter; overwritten by the next operation.
  std::byte* scratch(std::size_t bytes) {
    if (bytes > scratch_.size()) {
      meter_->add(bytes - scratch_.size());
      scratch_ = buffer<std::byte, cuda_device>(queue_, bytes);
    }
    return scratch_.data();
  }

  /// Creates a communicator by call(slot), polling the parent communicator `asked`, or the new one if it is
  /// null.
  template <class Call>
  std::shared_ptr<owned_comm> make(const char* name, const owned_comm* asked, Call call) {
    const auto made = std::make_shared<owned_comm>(options_.time_limit, [weak = weak_from_this()] {
      if (const auto all = weak.lock())
        all->give_up("an NCCL communicator was destroyed while waiting for other ranks");
    });
    const auto what = [name] { return std::string(name); };
    const on_cuda::device_guard guard(queue_.device());
    ncclResult_t code = call(made->slot());
    // ncclCommSplit may return success while in progress; query the communicator being split.
    if (asked != nullptr && code == ncclSuccess) code = asked->progress();
    settle(asked != nullptr ? *asked : *made, code, what);
    if (made->get() == nullptr) return nullptr;
    if (asked != nullptr) settle(*made, made->progress(), what);
    std::erase_if(comms_, [](const auto& c) { return c.expired(); });
    comms_.push_back(made);
    return made;
  }

  /// Polls until a call that returned `code` is no longer in progress. On error or timeout, fails all groups
  /// of this rank with what() in the message. Between open_together and close_together calls are not in
  /// progress before the second.
  template <class What>
  void settle(const owned_comm& comm, ncclResult_t code, What what) {
    if (together_ && code == ncclInProgress) return;
    const auto last = std::chrono::steady_clock::now() + options_.time_limit;
    while (code == ncclInProgress) {
      check_parent();
      if (std::chrono::steady_clock::now() > last)
        fail(what() + " has waited for other ranks for more than " +
             partita::comm::detail::text_of(options_.time_limit));
      std::this_thread::yield();
      code = comm.progress();
    }
    if (code != ncclSuccess) fail(what() + " failed: " + comm.why(code));
  }

  /// Makes the stream wait for the work enqueued on `memory` so far. Call close() once the operation is
  /// enqueued.
  pending_operation& open(const comm::collective& op, const comm::device_memory& memory) {
    retire();
    if (spare_.empty()) spare_.push_back(std::make_unique<pending_operation>(queue_));
    pending_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    pending_operation& pending = *pending_.back();
    pending.op = op;
    pending.axis = op.axis;
    pending.since.reset();
    pending.waited_for = false;
    memory.record(pending.ready);
    memory_.wait_on(pending.ready);
    memory_.record(pending.begun);
    return pending;
  }
  void close(pending_operation& pending) {
    if (together_)
      started_.push_back(&pending);
    else
      memory_.record(pending.done);
  }

  /// Operations of one communicator that are launched at once, by the second call.
  void open_together() { together_.emplace(); }
  void close_together(const owned_comm& comm) {
    call_group calls(std::move(*together_));
    together_.reset();
    std::vector<pending_operation*> started = std::exchange(started_, {});
    const auto record = [&] {
      for (pending_operation* const pending : started) memory_.record(pending->done);
    };
    try {
      settle(comm, calls.close(), [&] {
        return (started.empty() ? "a group of operations" : describe(started.front()->op)) +
               ", with others: " + calls.last();
      });
    } catch (...) {  // enqueued parts may still use the callers' memory
      record();
      throw;
    }
    record();
  }
  bool is_together() const { return together_.has_value(); }

  /// Waits for all operations of this rank. Throws as check().
  void drain() {
    for (check(); !pending_.empty() && !pending_.back()->done.event.reached(); check())
      std::this_thread::yield();
  }

  void require_alive() const {
    if (!failure_.empty()) throw communication_error(failure_);
  }
  /// Aborts all operations of this rank; later ones throw the same error.
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

  /// Throws if an operation failed or timed out, or the parent failed.
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
      fail(describe(pending.op) + partita::comm::detail::text_of_group(pending.axis) +
           " over NCCL is not complete after " + partita::comm::detail::text_of(options_.time_limit));
  }
  /// Recycles completed operations; a stream completes them in order.
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
  std::shared_ptr<memory::memory_meter> meter_;
  std::shared_ptr<comm::transport> parent_;
  options options_;
  buffer<std::byte, cuda_device> scratch_;
  std::vector<std::weak_ptr<owned_comm>> comms_;
  std::vector<std::unique_ptr<pending_operation>> pending_, spare_;
  std::optional<call_group> together_;
  std::vector<pending_operation*> started_;  ///< together
  std::string failure_;
};

}  // namespace detail

}  // namespace partita::nccl
