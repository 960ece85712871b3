// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The sparse blocks of one mesh row, received in sequence along the col axis.

#include <array>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"

namespace partita::algebra::detail {

/// Block k is received from rank k of the col axis, with the next one in flight; without communication along
/// col, every block is this rank's own.
template <class T, class Device>
class block_stream {
 public:
  /// `own`, `values` (see tile_shape::values_size) and, with several blocks, `sent` (the same structure,
  /// contiguous) are this rank's block and must outlive the stream.
  block_stream(const mesh<Device>& m, std::vector<local::tile_shape> shapes, local::tile_structure own,
               std::span<const local_index> sent, std::span<const T> values)
      : col_(m.along(axis::col)), shapes_(std::move(shapes)), own_(own), sent_(sent), values_(values) {
    if (shapes_.size() < 2) return;
    std::size_t most = 0, longest = 0;
    for (std::size_t k = 0; k < shapes_.size(); ++k) {
      most = std::max(most, shapes_[k].values_size());
      longest = std::max(longest, shapes_[k].structure_size());
    }
    for (auto& b : structures_) b = buffer<local_index, Device>(m.queue(), longest);
    for (auto& b : arrived_) b = buffer<T, Device>(m.queue(), most);
  }

  void start(std::size_t k) {
    if (shapes_.size() < 2) return;
    const int root = static_cast<int>(k);
    col_.together([&] {
      structure_requests_[k % 2] =
          col_.start_broadcast(sent_, structures_[k % 2].span().first(shapes_[k].structure_size()), root);
      value_requests_[k % 2] =
          col_.start_broadcast(values_, arrived_[k % 2].span().first(shapes_[k].values_size()), root);
    });
  }
  void arrive(std::size_t k) {
    structure_requests_[k % 2].wait();
    value_requests_[k % 2].wait();
  }
  /// The parts of tile t of block k.
  local::csr_slices<T> parts(std::size_t k, std::size_t t) const {
    return shapes_[k].parts(t, structure(k), values(k));
  }

 private:
  bool own(std::size_t k) const { return shapes_.size() < 2 || static_cast<int>(k) == col_.rank(); }
  local::tile_structure structure(std::size_t k) const {
    return own(k) ? own_ : shapes_[k].structure_at(structures_[k % 2].data());
  }
  const T* values(std::size_t k) const { return own(k) ? values_.data() : arrived_[k % 2].data(); }

  communicator col_;
  std::vector<local::tile_shape> shapes_;
  local::tile_structure own_;
  std::span<const local_index> sent_;
  std::span<const T> values_;
  std::array<buffer<local_index, Device>, 2> structures_;
  std::array<buffer<T, Device>, 2> arrived_;
  std::array<request, 2> structure_requests_, value_requests_;
};

}  // namespace partita::algebra::detail
