// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A thread for work that goes on beside that of a rank.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "partita/base/error.hpp"

namespace partita::base {

/// Runs one task at a time on a thread that is made with the first and kept, with its team for run_parts.
/// Used by one thread.
class background {
 public:
  background() = default;
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  /// Waits for the task, whose exception is then lost.
  ~background() {
    if (!worker_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// Begins a task. Throws error if the one before was not waited for.
  void start(std::function<void()> task) {
    if (pending_) throw error("a background task was started before the one before had been waited for");
    {
      const std::lock_guard lock(mutex_);
      task_ = std::move(task);
    }
    pending_ = true;
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
    changed_.notify_all();
  }
  /// Waits for the task, if one was started, and rethrows its exception.
  void wait() {
    if (!std::exchange(pending_, false)) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !task_; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return task_ || stops_; });
      if (!task_) return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        task_();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  std::exception_ptr failure_;
  bool pending_ = false, stops_ = false;
  std::thread worker_;
};

}  // namespace partita::base
