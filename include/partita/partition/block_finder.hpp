// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which block of a partition an index is in, for many indices.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partita/partition/blocking.hpp"

namespace partita::partition {

/// The blocks into which the axes of `by` cut a dimension, in nesting order: what blocking::owner finds by
/// bisection, in constant time.
class block_finder {
 public:
  block_finder(const blocking& b, axis_set by) {
    const auto blocks = static_cast<std::size_t>(b.shape().size(by));
    for (std::size_t k = 0; k < blocks; ++k) blocks_.push_back(b.block(by, k));
    while ((b.size() >> shift_) > most_entries) ++shift_;
    const global_index entries = b.size() == 0 ? 0 : ((b.size() - 1) >> shift_) + 1;
    for (global_index k = 0; k < entries; ++k)
      first_.push_back(static_cast<std::uint32_t>(b.owner(by, k << shift_)));
  }

  /// The block that contains i, which must be inside the dimension.
  std::size_t operator()(global_index i) const {
    std::size_t k = first_[static_cast<std::size_t>(i >> shift_)];
    while (i >= blocks_[k].end) ++k;
    return k;
  }
  interval block(std::size_t k) const { return blocks_[k]; }
  std::size_t count() const { return blocks_.size(); }

 private:
  static constexpr global_index most_entries = 1 << 12;

  std::vector<interval> blocks_;
  int shift_ = 0;
  std::vector<std::uint32_t> first_;  ///< the blocks of every 2^shift-th index
};

}  // namespace partita::partition
