// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention where the owners of vertices compute the coefficients of their in-edges, whatever the policy.

#include <vector>

#include "partita/algebra/attention/tiled.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::algebra::detail {

/// The pattern of A in whole rows, each on the rank that owns its vertex: row_1d on a mesh of all ranks in
/// one line. Matrices in vertex_rows have the same blocks on it as on the mesh of A.
///
/// Collective over the mesh. What travels: the entries of A^T, once, unless A is symmetric.
template <class T, class Device>
sparse<T, dynamic_layout, Device> pattern_of_owners(const transfer::in_edges<T, Device>& rows,
                                                    symmetry kind) {
  const mesh<Device>& m = rows.mesh();
  const mesh<Device> line(m.world(), {m.size(), 1, 1}, m.queue(), m.tile_entries());
  std::vector<global_index> sizes;
  for (int rank = 0; rank < m.size(); ++rank)
    sizes.push_back(rows.vertices().block(vertex_rows.rows, m.shape().at(rank)).size());
  const blocking vertices = blocking::given(std::move(sizes), line.shape(), nesting::rows);
  const std::vector<std::size_t> offsets = rows.own_offsets();
  const std::vector<T> ones(rows.own_columns().size(), T(1));
  const transfer::csr_rows entries(rows.own().begin, offsets, rows.own_columns(), ones);
  return distribute(line, row_1d, vertices, vertices, transfer::scaled_pattern(entries), kind,
                    transfer::sharing::trusted);
}

/// attention in whole rows of own vertices: one rank computes each coefficient; rows of X and of dY are
/// sent, but no edge values.
template <class T, class Device>
class owners_attention final : public attention_way<T, Device> {
 public:
  using typename attention_way<T, Device>::matrix;

  /// `of_edges`: how the gradient of the coefficients is found: rows, for one hop, or edges.
  owners_attention(const sparse<T, dynamic_layout, Device>& a, const transfer::in_edges<T, Device>& rows,
                   const attention_shape& shape, spmm_options options, coefficient_gradient of_edges)
      : pattern_(pattern_of_owners(rows, a.kind())),
        features_(columns(shape.columns())),
        scores_(columns(2 * shape.heads)),
        inner_(pattern_, transfer::in_edges<T, Device>(pattern_), shape, options, of_edges) {}

  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask) override {
    matrix to = in_line(y, features_);
    inner_.forward(in_line(x, features_), in_line(scores, scores_), to, mask);  // (n/P, w)
  }
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) override {
    matrix to = in_line(dx, features_), of_scores = in_line(dscores, scores_);
    inner_.backward(in_line(x, features_), in_line(dy, features_), to, of_scores);  // (n/P, w)
  }

  coefficient_gradient form() const override { return coefficient_gradient::owners; }
  traffic predicted() const override { return inner_.predicted(); }
  traffic predicted_forward() const override { return inner_.predicted_forward(); }
  global_index coefficients() const override { return inner_.coefficients(); }

 private:
  blocking columns(global_index width) const {
    return blocking::even(width, pattern_.mesh().shape(), nesting::cols);
  }
  /// x on the mesh of the pattern, in the same memory.
  template <class Matrix>
  matrix in_line(Matrix& x, const blocking& columns) const {
    return matrix::view(pattern_.mesh(), pattern_.row_blocking(), columns, x.values());
  }

  sparse<T, dynamic_layout, Device> pattern_;
  blocking features_, scores_;
  tiled_attention<T, Device> inner_;
};

}  // namespace partita::algebra::detail
