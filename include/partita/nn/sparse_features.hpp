#pragma once
/// Input features with few nonzeros, kept as such: this rank's vertices, all features.

#include <vector>

#include "partita/matrix/dense.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/nn/activation.hpp"

namespace partita {

namespace detail {

/// Dropout of an entry of a part of X, or of X^T.
template <class T>
struct dropped_entry {
  dropped<T> drop;
  global_index first_row, first_col;
  bool transposed;
  constexpr T operator()(local_index i, local_index j, local_index, T x) const {
    const global_index row = first_row + i, col = first_col + j;
    return transposed ? drop(col, row, x) : drop(row, col, x);
  }
};

}  // namespace detail

/// X (n x f) with rows cut as vertex_rows, in compressed rows and in compressed columns, so that X W and X^T
/// G are both sparse products of local blocks. Nothing travels.
template <class T, class Place>
class sparse_features {
 public:
  /// `entries`: the nonzeros of this rank's rows, by global indices; those of one place add up. Throws
  /// shape_error when there are more rows or columns than local indices can count.
  sparse_features(const partita::mesh<Place>& m, const blocking& rows, global_index features,
                  std::vector<triplet<T>> entries)
      : mesh_(m),
        rows_(rows),
        range_(rows.block(vertex_rows.rows, m.at())),
        features_{0, features},
        by_rows_(cut_tiles(range_, features_, entries)),
        by_columns_(cut_tiles(features_, range_, transposed(std::move(entries)))) {}

  extent shape() const { return {rows_.size(), features_.size()}; }
  const blocking& row_blocking() const { return rows_; }

  const partita::mesh<Place>& mesh() const { return mesh_; }

  /// From now on the matrix is dropout(X); X itself for a mask of probability 0.
  void apply(const dropout_mask& mask) {
    drops_ = mask.probability > 0;
    if (!drops_) return;
    const auto drop = [&](const tiles<T, Place>& x, interval rows, interval cols, bool transposed,
                          buffer<T, Place>& values) {
      values.reset(mesh_.queue(), x.nonzeros);
      x.for_parts(0, [&](const tile_part<T>& part) {
        edge_apply(
            mesh_.queue(), part.entries, 1,
            detail::dropped_entry<T>{mask.function<T>(), rows.begin + part.first_row, cols.begin, transposed},
            part.entries.values, part.values_in(values.data(), 1));
      });
    };
    drop(by_rows_, range_, features_, false, dropped_);
    drop(by_columns_, features_, range_, true, dropped_transposed_);
  }

  /// visitor(tile_part<T>) for the parts of this rank's block (n/P, f), in order of rows.
  template <class Visitor>
  void for_parts(Visitor visitor) const {
    visit(by_rows_, dropped_, visitor);
  }
  /// The same for its transpose (f, n/P).
  template <class Visitor>
  void for_transposed_parts(Visitor visitor) const {
    visit(by_columns_, dropped_transposed_, visitor);
  }

  /// y = this rank's block written out (n/P, f).
  void write_out(matrix_view<T> y) const {
    for_parts(
        [&](const tile_part<T>& part) { sparse_to_dense(mesh_.queue(), part.entries, part.rows_of(y)); });
  }

 private:
  tiles<T, Place> cut_tiles(interval rows, interval cols, std::vector<triplet<T>> entries) const {
    return make_tiles<T, Place>(mesh_.queue(), rows, std::span<const interval>(&cols, 1), std::move(entries),
                                mesh_.tile_entries());
  }
  static std::vector<triplet<T>> transposed(std::vector<triplet<T>> entries) {
    for (triplet<T>& e : entries) std::swap(e.row, e.col);
    return entries;
  }
  template <class Visitor>
  void visit(const tiles<T, Place>& x, const buffer<T, Place>& dropped, Visitor visitor) const {
    static_cast<const tile_shape&>(x).for_parts(0, x.structure.data(),
                                                drops_ ? dropped.data() : x.values.data(), visitor);
  }

  partita::mesh<Place> mesh_;
  blocking rows_;
  interval range_, features_;
  tiles<T, Place> by_rows_, by_columns_;
  bool drops_ = false;
  buffer<T, Place> dropped_, dropped_transposed_;  ///< the values that dropout leaves
};

}  // namespace partita
