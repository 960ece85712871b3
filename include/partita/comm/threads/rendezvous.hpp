#pragma once
/// How ranks that are threads wait for each other, read each other's memory, and fail together.

#include "partita/base/error.hpp"
#include "partita/comm/operation.hpp"
#include "partita/comm/threads/world.hpp"

namespace partita::detail {

class rendezvous : public wakeable {
 public:
  /// Throws poisoned_error when a rank has failed.
  void check() const {
    if (world_->poisoned()) throw poisoned_error("another rank failed: " + world_->message());
  }

 protected:
  rendezvous(std::shared_ptr<thread_world> world, std::vector<int> world_ranks)
      : world_(std::move(world)), world_ranks_(std::move(world_ranks)) {}

  /// Counts a reader while it lives, and gives up the lock meanwhile.
  class reading {
   public:
    reading(rendezvous& group, std::unique_lock<std::mutex>& lock, int& readers)
        : group_(group), lock_(lock), readers_(readers) {
      ++readers_;
      lock_.unlock();
    }
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;
    ~reading() {
      lock_.lock();
      if (--readers_ == 0 && group_.world_->poisoned()) group_.changed.notify_all();
    }

   private:
    rendezvous& group_;
    std::unique_lock<std::mutex>& lock_;
    int& readers_;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::string name(int rank) const { return std::to_string(world_ranks_[index(rank)]); }

  void poison(std::unique_lock<std::mutex>& lock, const std::string& what, std::exception_ptr error) {
    lock.unlock();
    world_->poison(what, error);
    lock.lock();
  }
  [[noreturn]] void fail(std::unique_lock<std::mutex>& lock, const std::string& what) {
    const auto error = std::make_exception_ptr(communication_error(what));
    poison(lock, what, error);
    std::rethrow_exception(error);
  }
  /// act(), which reads and is read. When it fails, so does the world, and this rank stays until nobody reads
  /// its memory any more.
  template <class Act, class Leave>
  void guarded(std::unique_lock<std::mutex>& lock, const int& readers, Act act, Leave leave) {
    try {
      act();
    } catch (const std::exception& e) {
      if (!world_->poisoned()) poison(lock, e.what(), std::current_exception());
      changed.wait(lock, [&] { return readers == 0; });
      leave();
      throw;
    }
  }

  /// Waits for `ready`. A failed world, or a rank (told by `missing`, -1 for none) that ended too early, is
  /// an error.
  template <class Ready, class Missing>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready, Missing missing, const collective& op) {
    for (;;) {
      check();
      if (ready()) return;
      if (const int rank = missing(); rank >= 0 && world_->has_ended(world_ranks_[index(rank)]))
        fail(lock, "rank " + name(rank) + " ended without taking part in " + describe(op));
      changed.wait(lock);
    }
  }

  std::shared_ptr<thread_world> world_;
  std::vector<int> world_ranks_;
};

}  // namespace partita::detail
