// SPDX-License-Identifier: Apache-2.0
#pragma once
/// State shared by all groups of one run of thread ranks: failures, which ranks have ended, and which have
/// been waiting for long.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace partita::comm::detail {

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
  /// `time_limit` is the longest time that a wait may take.
  thread_world(int ranks, std::optional<std::chrono::milliseconds> time_limit)
      : time_limit_(time_limit),
        ended_(static_cast<std::size_t>(ranks)),
        left_(static_cast<std::size_t>(ranks)),
        waits_(static_cast<std::size_t>(ranks)) {}

  std::optional<std::chrono::milliseconds> time_limit() const { return time_limit_; }

  void enlist(const std::shared_ptr<wakeable>& group) {
    const std::lock_guard lock(mutex_);
    group_list more = *groups_;
    more.push_back(group);
    groups_ = std::make_shared<const group_list>(std::move(more));
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

  /// The operation in which the rank has been waiting for long, or nothing.
  void set_wait(int rank, const std::string& where) {
    const std::lock_guard lock(mutex_);
    waits_[static_cast<std::size_t>(rank)] = where;
  }
  std::string wait_of(int rank) const {
    const std::lock_guard lock(mutex_);
    return waits_[static_cast<std::size_t>(rank)];
  }

  /// The body of the rank has returned or thrown.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = 1;
    one_left_.notify_all();
  }
  /// The ranks whose body has not ended within `time` from now.
  std::vector<int> still_running(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    const auto all_left = [&] { return std::find(left_.begin(), left_.end(), 0) == left_.end(); };
    std::vector<int> running;
    if (one_left_.wait_for(lock, time, all_left)) return running;
    for (std::size_t rank = 0; rank < left_.size(); ++rank)
      if (!left_[rank]) running.push_back(static_cast<int>(rank));
    return running;
  }

  std::string message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }
  std::exception_ptr failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  using group_list = std::vector<std::weak_ptr<wakeable>>;

  /// Allocates no memory: there may be none where a rank fails.
  void wake() {
    std::shared_ptr<const group_list> groups;
    {
      const std::lock_guard lock(mutex_);
      groups = groups_;
    }
    for (const std::weak_ptr<wakeable>& g : *groups)
      if (const auto alive = g.lock()) alive->wake();
  }

  std::optional<std::chrono::milliseconds> time_limit_;
  mutable std::mutex mutex_;
  std::condition_variable one_left_;
  std::shared_ptr<const group_list> groups_ = std::make_shared<const group_list>();
  std::vector<std::atomic<bool>> ended_;
  std::vector<char> left_;
  std::vector<std::string> waits_;
  std::atomic<bool> poisoned_{false};
  std::exception_ptr failure_;
  std::string message_;
};

}  // namespace partita::comm::detail
