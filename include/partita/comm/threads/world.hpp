// SPDX-License-Identifier: Apache-2.0
#pragma once
/// State shared by all groups of one run of thread ranks: failures, and which ranks have ended.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace partita::detail {

/// A mutex and condition variable that a failing rank can signal.
struct wakeable {
  std::mutex mutex;
  std::condition_variable changed;

  void wake() {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
};

/// Failure state of one run, shared by its ranks.
class thread_world {
 public:
  explicit thread_world(int ranks) : ended_(static_cast<std::size_t>(ranks)) {}

  void enlist(const std::shared_ptr<wakeable>& group) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(group);
  }

  /// Marks the run as failed. The first exception and its message are kept.
  void poison(const std::string& message, std::exception_ptr failure = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) {
        failure_ = std::move(failure);
        message_ = message;
      }
    }
    poisoned_ = true;
    wake();
  }
  bool poisoned() const { return poisoned_; }

  void end(int rank) {
    ended_[static_cast<std::size_t>(rank)] = true;
    wake();
  }
  bool has_ended(int rank) const { return ended_[static_cast<std::size_t>(rank)]; }

  std::string message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }
  std::exception_ptr failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  void wake() {
    std::vector<std::shared_ptr<wakeable>> groups;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& g : groups_)
        if (auto alive = g.lock()) groups.push_back(std::move(alive));
    }
    for (const auto& g : groups) g->wake();
  }

  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<wakeable>> groups_;
  std::vector<std::atomic<bool>> ended_;
  std::atomic<bool> poisoned_{false};
  std::exception_ptr failure_;
  std::string message_;
};

}  // namespace partita::detail
