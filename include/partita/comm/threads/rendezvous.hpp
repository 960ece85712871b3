// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Synchronisation, reads of peers' memory, and failure propagation among thread ranks.

#include "partita/base/error.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/comm/call_site.hpp"
#include "partita/comm/late.hpp"
#include "partita/comm/threads/endpoint.hpp"
#include "partita/comm/threads/world.hpp"

namespace partita::comm::detail {

class rendezvous : public wakeable {
 public:
  /// Exclusive access to the rendezvous; released while waiting or reading.
  using lock = std::unique_lock<std::mutex>;
  using condition = base::function_reference<bool()>;
  using condition_of_rank = base::function_reference<bool(int)>;

  rendezvous(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : world_(std::move(world)), world_ranks_(std::move(world_ranks)) {}

  int size() const { return static_cast<int>(world_ranks_.size()); }
  const std::shared_ptr<thread_world>& world() const { return world_; }
  /// The ranks' names in error messages.
  const std::vector<int>& world_ranks() const { return world_ranks_; }
  std::string name(int rank) const { return std::to_string(world_rank(rank)); }
  bool has_ended(int rank) const { return world_->has_ended(world_rank(rank)); }
  /// "rank 2 calls all_reduce of f64 (spmm.hpp:120) with 4 elements".
  std::string call(const posted_operation& p) const {
    const std::string elements = p.op.splits ? "" : base::sentence_of({" with ", p.op.count, " elements"});
    return base::sentence_of(
        {"rank ", name(p.endpoint->rank()), " calls ", describe(p.op), elements, p.endpoint->device_name()});
  }

  /// Throws poisoned_error if a rank has failed.
  void check() const {
    if (world_->poisoned()) base::throw_error<poisoned_error>({"another rank failed: ", world_->message()});
  }
  [[noreturn]] void fail(lock& held, const std::string& why) {
    const std::string what = comm::task_scope::named(why);
    const auto error = std::make_exception_ptr(communication_error(what));
    poison(held, what, error);
    std::rethrow_exception(error);
  }

  /// Waits, as rank `me`, for `ready`, which needs the ranks for which absent(rank) holds. Throws if the
  /// world failed, if one of these ranks has ended, or after the time limit.
  void wait(lock& held, int me, const comm::collective& op, condition ready, condition_of_rank absent) {
    long_wait lasting(*this, me, op);
    for (;;) {
      check();
      if (ready()) return;
      for (int rank = 0; rank < size(); ++rank)
        if (absent(rank) && has_ended(rank)) fail_ended(held, rank, op);
      if (!lasting.pause(held)) fail_late(held, me, op, absent);
    }
  }

  /// Waits until there are no readers, even after a failure.
  void wait_for_readers(lock& held, const int& readers) {
    changed.wait(held, [&] { return readers == 0; });
  }

  /// Scope in which this rank reads posted memory: counted as a reader, with the lock released.
  class reading {
   public:
    reading(rendezvous& at, lock& held, int& readers) : at_(at), held_(held), readers_(readers) {
      ++readers_;
      held_.unlock();
    }
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;
    ~reading() {
      held_.lock();
      if (--readers_ == 0 && at_.world_->poisoned()) at_.changed.notify_all();
    }

   private:
    rendezvous& at_;
    lock& held_;
    int& readers_;
  };

  /// Calls act(). If it throws, poisons the world, waits until no peer is reading this rank's memory, calls
  /// leave() and rethrows.
  void guarded(lock& held, const int& readers, base::function_reference<void()> act,
               base::function_reference<void()> leave) {
    try {
      act();
    } catch (const std::exception& e) {
      if (!world_->poisoned()) poison(held, e.what(), std::current_exception());
      wait_for_readers(held, readers);
      leave();
      throw;
    }
  }

 private:
  using clock = std::chrono::steady_clock;

  /// How long a wait lasts, if the world has a time limit. After half of the limit, other ranks are told.
  class long_wait {
   public:
    long_wait(rendezvous& at, int rank, const comm::collective& op)
        : at_(at), rank_(at.world_rank(rank)), op_(op) {}
    long_wait(const long_wait&) = delete;
    long_wait& operator=(const long_wait&) = delete;
    ~long_wait() {
      if (told_) at_.world_->set_wait(rank_, {});
    }

    /// Waits for a change; returns false if the time is over.
    bool pause(lock& held) {
      const auto limit = at_.world_->time_limit();
      if (!limit) {
        at_.changed.wait(held);
        return true;
      }
      const clock::time_point now = clock::now();
      if (!begin_) begin_ = now;
      if (now - *begin_ >= *limit) return false;
      if (!told_ && now - *begin_ >= *limit / 2) {
        told_ = true;
        at_.world_->set_wait(rank_, text_of(op_));
      }
      at_.changed.wait_until(held, *begin_ + (told_ ? *limit : *limit / 2));
      return true;
    }

   private:
    rendezvous& at_;
    int rank_;
    const comm::collective& op_;
    std::optional<clock::time_point> begin_;
    bool told_ = false;
  };

  static std::string text_of(const comm::collective& op) { return describe(op) + text_of_group(op.axis); }

  [[noreturn]] void fail_late(lock& held, int me, const comm::collective& op, condition_of_rank absent) {
    std::vector<int> ranks;
    std::string elsewhere;
    for (int q = 0; q < size(); ++q) {
      if (q == me || !absent(q)) continue;
      ranks.push_back(world_rank(q));
      if (const std::string waits = world_->wait_of(world_rank(q)); !waits.empty())
        elsewhere += "; rank " + name(q) + " waits in " + waits;
    }
    fail(held, late(world_rank(me), *world_->time_limit(), ranks, text_of(op)) + elsewhere);
  }
  [[noreturn]] void fail_ended(lock& held, int rank, const comm::collective& op) {
    fail(held, base::sentence_of({"rank ", name(rank), " ended without taking part in ", describe(op)}));
  }
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  void poison(lock& held, const std::string& what, std::exception_ptr error) {
    held.unlock();
    world_->poison(what, error);
    held.lock();
  }

  std::shared_ptr<thread_world> world_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::comm::detail
