#pragma once
/// The sparse blocks of a row of the grid, one after another, as they come along the col axis.

#include <array>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"

namespace partita::detail {

/// What a rank must know of another rank's block to receive and use it.
struct block_shape {
  std::size_t nonzeros = 0;
  std::vector<local_index> widths;  ///< of each tile, as multiplied
};

/// Block k comes from rank k of the col axis (or is always this rank's own); the next one is in flight
/// meanwhile.
template <class T, class Place>
class block_stream {
 public:
  /// `structure` and `values` of this rank's block must live as long as the stream.
  block_stream(const mesh<Place>& m, local_index rows, std::vector<block_shape> shapes,
               std::span<const local_index> structure, std::span<const T> values)
      : col_(m.along(axis::col)),
        rows_(rows),
        shapes_(std::move(shapes)),
        structure_(structure),
        values_(values) {
    if (shapes_.size() < 2) return;
    std::size_t most = 0, longest = 0;
    for (std::size_t k = 0; k < shapes_.size(); ++k) {
      most = std::max(most, shapes_[k].nonzeros);
      longest = std::max(longest, size(k));
    }
    for (auto& b : structures_) b = buffer<local_index, Place>(m.queue(), longest);
    for (auto& b : arrived_) b = buffer<T, Place>(m.queue(), most);
  }

  void start(std::size_t k) {
    if (shapes_.size() < 2) return;
    const int root = static_cast<int>(k);
    structure_requests_[k % 2] =
        col_.start_broadcast(structure_, structures_[k % 2].span().first(size(k)), root);
    value_requests_[k % 2] =
        col_.start_broadcast(values_, arrived_[k % 2].span().first(shapes_[k].nonzeros), root);
  }
  void arrive(std::size_t k) {
    structure_requests_[k % 2].wait();
    value_requests_[k % 2].wait();
  }
  csr_view<T> tile(std::size_t k, int t) {
    const auto at = static_cast<std::size_t>(t);
    return tile_view<T>(structure(k), values(k), rows_, shapes_[k].widths.size(), at, shapes_[k].widths[at]);
  }
  /// Elements and messages that this rank receives for all blocks.
  volume predicted() const {
    volume v;
    for (std::size_t k = 0; k < shapes_.size() && shapes_.size() > 1; ++k) {
      if (static_cast<int>(k) == col_.rank()) continue;
      v += {static_cast<global_index>(size(k)), 1};
      if (shapes_[k].nonzeros > 0) v += {static_cast<global_index>(shapes_[k].nonzeros), 1};
    }
    return v;
  }

 private:
  bool own(std::size_t k) const { return shapes_.size() < 2 || static_cast<int>(k) == col_.rank(); }
  std::size_t size(std::size_t k) const {
    return structure_size(shapes_[k].widths.size(), rows_, shapes_[k].nonzeros);
  }
  const local_index* structure(std::size_t k) const {
    return own(k) ? structure_.data() : structures_[k % 2].data();
  }
  const T* values(std::size_t k) const { return own(k) ? values_.data() : arrived_[k % 2].data(); }

  communicator col_;
  local_index rows_;
  std::vector<block_shape> shapes_;
  std::span<const local_index> structure_;
  std::span<const T> values_;
  std::array<buffer<local_index, Place>, 2> structures_;
  std::array<buffer<T, Place>, 2> arrived_;
  std::array<request, 2> structure_requests_, value_requests_;
};

}  // namespace partita::detail
