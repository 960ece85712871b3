// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where kernels under test run: a queue, and copies of the test's data. Of CUDA: stage_cuda.hpp.
#include <deque>

#include "partita/local/kernels.hpp"
#include "support/blocks.hpp"
#include "support/sanitized.hpp"

namespace test_support {

namespace reference = partita::reference;
using partita::host;

/// The queues on which a kernel must do the same, bit by bit.
template <class Device>
std::vector<partita::device_queue<Device>> queues();

/// With several threads.
template <>
inline std::vector<partita::device_queue<host>> queues<host>() {
  if (sanitized) return {partita::device_queue<host>(1), partita::device_queue<host>(3)};
  return {partita::device_queue<host>(1), partita::device_queue<host>(2), partita::device_queue<host>(3)};
}

/// What a kernel writes: a block that began as a copy of one on the host.
template <class T, class Device>
class staged_block {
 public:
  staged_block(const partita::device_queue<Device>& q, const block<T>& from)
      : queue_(q), shape_(from), memory_(q, from.values.size()) {
    copy(queue_, std::span<const T>(shape_.values), memory_.span());
  }

  T* data() { return memory_.data() + shape_.lead; }
  matrix_view<T> view() { return {data(), shape_.rows, shape_.cols, shape_.stride}; }
  /// Everything, what lies around the block included.
  std::vector<T> fetch() const {
    std::vector<T> values(memory_.size());
    copy(queue_, memory_.span(), std::span<T>(values));
    return values;
  }

 private:
  partita::device_queue<Device> queue_;
  block<T> shape_;
  partita::buffer<T, Device> memory_;
};

/// Copies stay as long as the stage.
template <class Device>
class stage {
 public:
  explicit stage(const partita::device_queue<Device>& q) : queue(q) {}

  template <class T>
  const T* operator()(const std::vector<T>& values) {
    T* const memory = room<T>(values.size());
    copy(queue, std::span<const T>(values), std::span<T>(memory, values.size()));
    return memory;
  }
  template <class T>
  std::span<const T> span(const std::vector<T>& values) {
    return {(*this)(values), values.size()};
  }
  template <class T>
  matrix_view<const T> operator()(const block<T>& b) {
    return {(*this)(b.values) + b.lead, b.rows, b.cols, b.stride};
  }
  template <class T>
  partita::local::csr_view<T> operator()(const sparse_block<T>& a) {
    partita::local::csr_view<T> view = pattern(a);
    view.values = (*this)(a.values) + a.values_lead;
    return view;
  }
  template <class T>
  partita::local::csr_view<T> pattern(const sparse_block<T>& a) {
    return {a.rows, a.cols, (*this)(a.offsets), (*this)(a.columns) + a.columns_lead, nullptr};
  }
  /// `count` elements of anything.
  template <class T>
  T* room(std::size_t count) {
    auto memory = std::make_shared<partita::buffer<T, Device>>(queue, count);
    held_.push_back(memory);
    return memory->data();
  }
  template <class T>
  void put(T value, T* to) {
    copy(queue, std::span<const T>(&value, 1), std::span<T>(to, 1));
  }

  const partita::device_queue<Device> queue;

 private:
  std::deque<std::shared_ptr<void>> held_;
};

/// Runs `kernel(stage, staged block)` on copies of y and on every queue: all results must agree with
/// `expected`, and in every bit with each other.
template <class Device, class T, class Kernel>
void agree(const block<T>& y, const block<T>& expected, double allowed, Kernel kernel) {
  std::vector<T> first;
  for (const auto& q : queues<Device>()) {
    stage<Device> at(q);
    staged_block<T, Device> staged(q, y);
    kernel(at, staged);
    const std::vector<T> result = staged.fetch();
    INFO("rows ", y.rows, " cols ", y.cols, " stride ", y.stride, " lead ", y.lead);
    CHECK(distance(result, expected.values) < allowed);
    if (first.empty()) first = result;
    CHECK(same_bits(result, first));
  }
}

/// The same with what `expect(y)` makes of a copy of y.
template <class Device, class T, class Kernel, class Expect>
void agree_with(const block<T>& y, double allowed, Kernel kernel, Expect expect) {
  block<T> expected = y;
  expect(expected);
  agree<Device>(y, expected, allowed, kernel);
}

}  // namespace test_support
