// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Block boundaries along one dimension.
///
/// A blocking stores the finest cut, by all three axes in nesting order. The block for any subset of axes is
/// a contiguous run of finest blocks, so blocks of different layouts nest.
///
/// 7 rows on a 2 x 1 x 2 mesh:
///
///     finest (row, depth): [0,2) [2,4) | [4,6) [6,7)
///     by row:              [0,4)       | [4,7)

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

/// Partition of [0, size()) into blocks along one dimension. Immutable value; copies share the offsets.
class blocking {
 public:
  /// Evenly sized nested blocks: of p blocks of n indices, the first n mod p are one longer. Exact for
  /// leading axes of the nesting order; a set that omits an outer axis groups finest blocks and may be
  /// slightly less even. Throws shape_error if n < 0.
  static blocking even(global_index n, mesh_shape shape, nesting order) {
    if (n < 0) base::throw_error<shape_error>({"a dimension of ", n, " cannot be partitioned into blocks"});
    return subdivide({n}, 0, shape, order);
  }

  /// Blocks of the given sizes, e.g. from a graph partitioner: one per block of the outermost axis, of the
  /// two outermost, or of all three; the remaining levels are split evenly. Throws shape_error if the count
  /// matches none of these or a size is negative.
  static blocking given(std::vector<global_index> sizes, mesh_shape shape, nesting order) {
    const auto axis_order = partition::order_of(order);
    std::size_t blocks = 1;
    for (std::size_t level = 0; level <= 3; ++level) {
      if (level > 0) blocks *= static_cast<std::size_t>(shape[axis_order[level - 1]]);
      if (blocks != sizes.size()) continue;
      if (std::any_of(sizes.begin(), sizes.end(), [](global_index s) { return s < 0; }))
        throw shape_error("a block has a negative size");
      return subdivide(std::move(sizes), level, shape, order);
    }
    base::throw_error<shape_error>({sizes.size(), " block sizes match no set of axes of mesh ", shape});
  }

  /// Finest blocks of nearly equal total weight (for a sparse matrix: nonzeros per row). Blocks may be empty.
  static blocking balanced(std::span<const global_index> weights, mesh_shape shape, nesting order) {
    const auto ranks = static_cast<global_index>(shape.size());
    const global_index total = std::accumulate(weights.begin(), weights.end(), global_index{0});
    if (total == 0) return even(static_cast<global_index>(weights.size()), shape, order);
    std::vector<global_index> offsets{0};
    global_index i = 0, before = 0;
    for (global_index k = 1; k < ranks; ++k) {
      const double target = static_cast<double>(total) * static_cast<double>(k) / static_cast<double>(ranks);
      const auto n = static_cast<global_index>(weights.size());
      while (i < n &&
             static_cast<double>(before) + static_cast<double>(weights[static_cast<std::size_t>(i)]) / 2 <
                 target)
        before += weights[static_cast<std::size_t>(i++)];
      offsets.push_back(i);
    }
    offsets.push_back(static_cast<global_index>(weights.size()));
    return blocking(std::move(offsets), shape, order);
  }

  /// Blocks `times` as long, of a matrix that has so many rows for each index here.
  blocking stacked(global_index times) const {
    std::vector<global_index> offsets = *offsets_;
    for (global_index& offset : offsets) offset *= times;
    return blocking(std::move(offsets), shape_, order_);
  }

  global_index size() const { return offsets_->back(); }
  mesh_shape shape() const { return shape_; }

  /// Index range owned by the rank at `at` when the axes of `by` cut this dimension.
  interval block(axis_set by, coordinates at) const {
    std::size_t index = 0;
    for (axis a : partition::order_of(order_))
      if (by.contains(a))
        index = index * static_cast<std::size_t>(shape_[a]) + static_cast<std::size_t>(at[a]);
    return block(by, index);
  }
  /// Block `index`, in nesting order of the axes of `by`, of those into which they cut this dimension.
  interval block(axis_set by, std::size_t index) const {
    const std::size_t run = (offsets_->size() - 1) / static_cast<std::size_t>(shape_.size(by));
    return {(*offsets_)[index * run], (*offsets_)[(index + 1) * run]};
  }

  /// Index, in nesting order of the axes of `by`, of the block that contains i.
  std::size_t owner(axis_set by, global_index i) const {
    const std::size_t run = (offsets_->size() - 1) / static_cast<std::size_t>(shape_.size(by));
    const auto next = std::upper_bound(offsets_->begin(), offsets_->end(), i);
    return static_cast<std::size_t>(next - offsets_->begin() - 1) / run;
  }

  /// Equal if the nesting order and the finest blocks are equal; the same sizes under another nesting differ.
  friend bool operator==(const blocking& a, const blocking& b) {
    return a.order_ == b.order_ && a.shape_ == b.shape_ &&
           (a.offsets_ == b.offsets_ || *a.offsets_ == *b.offsets_);
  }

 private:
  blocking(std::vector<global_index> offsets, mesh_shape shape, nesting order)
      : offsets_(std::make_shared<const std::vector<global_index>>(std::move(offsets))),
        shape_(shape),
        order_(order) {}

  static blocking subdivide(std::vector<global_index> sizes, std::size_t level, mesh_shape shape,
                            nesting order) {
    for (; level < 3; ++level) {
      const auto parts = static_cast<global_index>(shape[partition::order_of(order)[level]]);
      std::vector<global_index> finer;
      for (global_index s : sizes)
        for (global_index k = 0; k < parts; ++k) finer.push_back(s / parts + (k < s % parts ? 1 : 0));
      sizes = std::move(finer);
    }
    std::vector<global_index> offsets(sizes.size() + 1, 0);
    std::inclusive_scan(sizes.begin(), sizes.end(), offsets.begin() + 1);
    return blocking(std::move(offsets), shape, order);
  }

  std::shared_ptr<const std::vector<global_index>> offsets_;
  mesh_shape shape_;
  nesting order_;
};

}  // namespace partita
