// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists of numbers in the memory of a device, for tests that need one.

#include "partita/base/random.hpp"
#include "partita/memory/cuda.hpp"

namespace test_support {

/// A copy on the device of a list, `skip` elements behind an address aligned to 256 bytes.
template <class T>
class on_device {
 public:
  on_device(const partita::device_queue<partita::cuda_device>& q, const std::vector<T>& values,
            std::size_t skip = 0)
      : q_(q), memory_(q, values.size() + skip), values_(memory_.span().subspan(skip)) {
    partita::copy(q, std::span<const T>(values), values_);
  }

  T* data() const { return values_.data(); }
  std::vector<T> read() const {
    std::vector<T> values(values_.size());
    partita::copy(q_, std::span<const T>(values_), std::span(values));
    return values;
  }

 private:
  partita::device_queue<partita::cuda_device> q_;
  partita::buffer<T, partita::cuda_device> memory_;
  std::span<T> values_;
};

/// `count` numbers between -1/2 and 1/2.
template <class T>
std::vector<T> random_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(partita::base::random_uniform(seed, static_cast<std::int64_t>(i), 0) - 0.5);
  return values;
}

}  // namespace test_support
