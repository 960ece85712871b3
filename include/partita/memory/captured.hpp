// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Work that is the same in every step but for some numbers, which a device may do again by itself.

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "partita/base/step_number.hpp"
#include "partita/memory/device.hpp"

namespace partita::memory {

/// What differs between the steps of work that is done again: numbers, for which kernels have a place in the
/// device's memory, and what the host keeps count of.
class step_numbers {
 public:
  static constexpr std::size_t most = 1024;

  /// Forgets all, and gives away places from `device` on for what it writes to `host`, for this step.
  void begin(std::uint64_t* host, const std::uint64_t* device, std::uint64_t step) {
    work_.clear();
    host_ = host;
    device_ = device;
    step_ = step;
    count_ = 0;
  }
  /// f(step) in this step and in each that follows. Throws error where there are more than `most`.
  template <class V, class F>
  base::step_number<V> number(F f) {
    static_assert(sizeof(V) <= sizeof(std::uint64_t));
    if (count_ == most)
      base::throw_error<error>({"a step that is recorded has at most ", most,
                                " numbers of its own: on_cuda::without_graphs has it launched instead"});
    const auto write = [f = std::move(f), to = host_ + count_](std::uint64_t step) {
      const V now = f(step);
      std::memcpy(to, &now, sizeof now);
    };
    write(step_);
    work_.push_back(write);
    return base::step_number<V>(reinterpret_cast<const V*>(device_ + count_++));
  }
  /// f() before each step that follows, ahead of numbers that are asked for later.
  void before_each(std::function<void()> f) {
    work_.push_back([f = std::move(f)](std::uint64_t) { f(); });
  }
  /// Writes the numbers of another step.
  void go_on(std::uint64_t step) {
    for (const auto& f : work_) f(step);
  }
  /// How many places it gave away.
  std::size_t count() const { return count_; }

 private:
  std::vector<std::function<void(std::uint64_t)>> work_;
  std::uint64_t* host_ = nullptr;
  const std::uint64_t* device_ = nullptr;
  std::uint64_t step_ = 0;
  std::size_t count_ = 0;
};

/// Work that enqueues the same in every call, but for what it asks step_numbers for, and waits for nothing.
/// A device may record it, and do it again without a call: then work(numbers) is not called, and what it
/// asked for is written anew. Otherwise it is called with null. What it gives step_numbers, and the memory
/// that it works on, live as long as this.
template <class Device>
class captured {
 public:
  template <class F>
  void operator()(const device_queue<Device>&, std::uint64_t, const F& work) {
    work(static_cast<step_numbers*>(nullptr));
  }
};

}  // namespace partita::memory
