// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>

namespace test_support {

/// A gate that opens after so many calls of pass().
class gate {
 public:
  explicit gate(int passes) : left_(passes) {}
  void pass() {
    const std::lock_guard lock(mutex_);
    --left_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_ <= 0; });
  }
  /// act(), which passes where it fails.
  void pass_if_fails(auto act) {
    try {
      act();
    } catch (const std::exception&) {
      pass();
      throw;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_;
};

}  // namespace test_support
