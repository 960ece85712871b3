// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Synchronisation, reads of peers' memory, and failure propagation among thread ranks.

#include "partita/base/error.hpp"
#include "partita/comm/call_site.hpp"
#include "partita/comm/threads/endpoint.hpp"
#include "partita/comm/threads/world.hpp"

namespace partita::detail {

class rendezvous : public wakeable {
 public:
  /// Exclusive access to the rendezvous; released while waiting or reading.
  using lock = std::unique_lock<std::mutex>;

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
    if (world_->poisoned()) throw_error<poisoned_error>({"another rank failed: ", world_->message()});
  }
  [[noreturn]] void fail(lock& held, const std::string& why) {
    const std::string what = comm::task_scope::named(why);
    const auto error = std::make_exception_ptr(communication_error(what));
    poison(held, what, error);
    std::rethrow_exception(error);
  }

  /// Waits for `ready`. Throws if the world failed, or if the rank that missing() returns (-1: none) has
  /// ended.
  template <class Ready, class Missing>
  void wait(lock& held, const comm::collective& op, Ready ready, Missing missing) {
    for (;;) {
      check();
      if (ready()) return;
      if (const int rank = missing(); rank >= 0 && has_ended(rank)) fail_absent(held, rank, op);
      changed.wait(held);
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
  template <class Act, class Leave>
  void guarded(lock& held, const int& readers, Act act, Leave leave) {
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
  [[noreturn]] void fail_absent(lock& held, int rank, const comm::collective& op) {
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

}  // namespace partita::detail
