// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The order in which training vertices are visited in an epoch.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/io/dataset_type.hpp"

namespace partita::nn {

/// The vertices of one part of the split, ascending.
inline std::vector<global_index> vertices_in(const io::dataset& data, io::split_part part) {
  std::vector<global_index> found;
  for (global_index v = 0; v < data.vertices; ++v)
    if (data.split[static_cast<std::size_t>(v)] == static_cast<std::uint8_t>(part)) found.push_back(v);
  return found;
}
/// The training vertices. Throws input_error if there are none.
inline std::vector<global_index> training_vertices(const io::dataset& data) {
  std::vector<global_index> found = vertices_in(data, io::split_part::train);
  if (found.empty()) base::throw_error<input_error>({data.name, ": the training set is empty"});
  return found;
}

/// Batches of an epoch: a random permutation of the vertices, cut into pieces of `size`, of which the last
/// may be smaller. The same on every rank: a function of seed and epoch.
class batch_order {
 public:
  /// Throws error for no vertices, and a size less than 1.
  batch_order(std::vector<global_index> vertices, global_index size, std::uint64_t seed)
      : vertices_(std::move(vertices)), size_(static_cast<std::size_t>(size)), seed_(seed) {
    if (size < 1) base::throw_error<error>({"a batch has at least one vertex, not ", size});
    if (vertices_.empty()) throw error("there are no vertices to make batches of");
  }

  /// Shuffles the ascending vertices.
  void begin(std::uint64_t epoch) {
    constexpr std::uint64_t stream = 0x62617463;
    order_ = vertices_;
    base::shuffle(order_, random_key{seed_, epoch, stream}.word());
  }
  const std::vector<global_index>& vertices() const { return vertices_; }
  std::size_t iterations() const { return (vertices_.size() + size_ - 1) / size_; }
  /// Batch i of the epoch that has begun.
  std::span<const global_index> batch(std::size_t i) const {
    return std::span(order_).subspan(i * size_, std::min(size_, order_.size() - i * size_));
  }

 private:
  std::vector<global_index> vertices_, order_;
  std::size_t size_;
  std::uint64_t seed_;
};

}  // namespace partita::nn
