// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lists in device memory, for the host to walk through.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// Device memory that is read from the first element to the last one, in blocks.
template <class Device>
class index_reader {
 public:
  index_reader(const device_queue<Device>& q, const local_index* from, local_index end)
      : q_(q), from_(from), end_(end) {}

  local_index operator[](local_index i) {
    if (i < first_ || i - first_ >= static_cast<local_index>(block_.size())) {
      first_ = i;
      block_.resize(static_cast<std::size_t>(std::min<local_index>(end_ - i, 1 << 16)));
      copy(q_, std::span<const local_index>(from_ + i, block_.size()), std::span<local_index>(block_));
    }
    return block_[static_cast<std::size_t>(i - first_)];
  }

 private:
  const device_queue<Device>& q_;
  const local_index* from_;
  local_index end_, first_ = 0;
  std::vector<local_index> block_;
};

}  // namespace partita::local
