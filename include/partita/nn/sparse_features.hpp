#pragma once
/// Input features with few nonzeros, kept as such: this rank's vertices, all features.

#include <vector>

#include "partita/matrix/dense.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/nn/activation.hpp"

namespace partita {

namespace detail {

/// Dropout of stored entry e, which stands at (first_row + rows[e], columns[e]).
template <class T>
struct dropped_entry {
  dropped<T> drop;
  global_index first_row;
  const local_index *rows, *columns;
  constexpr T operator()(local_index, local_index e, T x) const {
    return drop(first_row + rows[e], columns[e], x);
  }
};

/// values[from[e]].
template <class T>
struct permuted {
  const T* values;
  const local_index* from;
  constexpr T operator()(local_index, local_index e, T) const { return values[from[e]]; }
};

}  // namespace detail

/// X (n x f) with rows cut as vertex_rows, in compressed rows and in compressed columns, so that X W and X^T
/// G are both sparse products of local blocks. Nothing travels.
template <class T, class Place>
class sparse_features {
 public:
  /// `entries`: the nonzeros of this rank's rows, by global indices. Throws shape_error when there are more
  /// than local indices can count.
  sparse_features(const partita::mesh<Place>& m, const blocking& rows, global_index features,
                  std::vector<triplet<T>> entries)
      : mesh_(m),
        rows_(rows),
        range_(rows.block(vertex_rows::value.rows, m.at())),
        features_(features),
        by_rows_(make_tiles<T, Place>(m.queue(), range_, whole(features), std::move(entries))) {
    const auto n = by_rows_.nonzeros;
    if (!by_rows_.recounts.empty())
      throw shape_error("sparse features of " + std::to_string(n) +
                        " nonzeros on one rank do not fit 32-bit local indices");
    std::vector<local_index> structure(by_rows_.structure.size()), row(n), permutation(n);
    copy(m.queue(), std::as_const(by_rows_).structure.span(), std::span<local_index>(structure));
    const local_index* column = structure.data() + by_rows_.offsets_size();
    const std::size_t lists = offsets_size(1, by_rows_.widths[0]);
    std::vector<local_index> by_columns(lists + n, 0);
    for (std::size_t e = 0; e < n; ++e) ++by_columns[static_cast<std::size_t>(column[e]) + 1];
    const auto offsets_end = by_columns.begin() + features + 1;
    std::inclusive_scan(by_columns.begin(), offsets_end, by_columns.begin());
    std::vector<local_index> next(by_columns.begin(), offsets_end);
    for (local_index i = 0; i < by_rows_.rows; ++i)
      for (local_index e = structure[static_cast<std::size_t>(i)];
           e < structure[static_cast<std::size_t>(i) + 1]; ++e) {
        const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(column[e])]++);
        row[static_cast<std::size_t>(e)] = i;
        by_columns[lists + at] = i;
        permutation[at] = e;
      }
    row_of_ = upload(row);
    permutation_ = upload(permutation);
    by_columns_ = upload(by_columns);
    values_ = buffer<T, Place>(m.queue(), n);
    transposed_values_ = buffer<T, Place>(m.queue(), n);
    apply({});
  }

  extent shape() const { return {rows_.size(), features_}; }
  const blocking& row_blocking() const { return rows_; }

  const partita::mesh<Place>& mesh() const { return mesh_; }

  /// y = this rank's block written out (n/P, f).
  void write_out(matrix_view<T> y) const {
    std::vector<local_index> structure(by_rows_.structure.size());
    std::vector<T> values(values_.size()),
        whole(static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols), T(0));
    copy(mesh_.queue(), by_rows_.structure.span(), std::span<local_index>(structure));
    copy(mesh_.queue(), values_.span(), std::span<T>(values));
    for (local_index i = 0; i < y.rows; ++i)
      for (auto e = static_cast<std::size_t>(structure[static_cast<std::size_t>(i)]);
           e < static_cast<std::size_t>(structure[static_cast<std::size_t>(i) + 1]); ++e)
        whole[static_cast<std::size_t>(i) * static_cast<std::size_t>(y.cols) +
              static_cast<std::size_t>(structure[by_rows_.offsets_size() + e])] = values[e];
    copy(mesh_.queue(), std::span<const T>(whole), std::span<T>(y.data, whole.size()));
  }

  /// From now on the matrix is dropout(X); X itself for a mask of probability 0.
  void apply(const dropout_mask& mask) {
    const detail::dropped_entry<T> drop{mask.function<T>(), range_.begin, row_of_.data(),
                                        by_rows_.structure.data() + by_rows_.offsets_size()};
    kernels<Place>::map_indexed(mesh_.queue(), drop, as_row(by_rows_.values.data()), as_row(values_.data()));
    const detail::permuted<T> transpose{values_.data(), permutation_.data()};
    kernels<Place>::map_indexed(mesh_.queue(), transpose, as_row(values_.data()),
                                as_row(transposed_values_.data()));
  }

  /// This rank's block (n/P, f), and its transpose (f, n/P).
  csr_view<T> local() const {
    return {by_rows_.rows, by_rows_.widths[0], by_rows_.structure.data(),
            by_rows_.structure.data() + by_rows_.offsets_size(), values_.data()};
  }
  csr_view<T> local_transposed() const {
    return {by_rows_.widths[0], by_rows_.rows, by_columns_.data(),
            by_columns_.data() + offsets_size(1, by_rows_.widths[0]), transposed_values_.data()};
  }

 private:
  static std::vector<interval> whole(global_index features) { return {{0, features}}; }
  buffer<local_index, Place> upload(const std::vector<local_index>& values) const {
    buffer<local_index, Place> b(mesh_.queue(), values.size());
    copy(mesh_.queue(), std::span<const local_index>(values), b.span());
    return b;
  }
  template <class U>
  matrix_view<U> as_row(U* data) const {
    const auto n = static_cast<local_index>(by_rows_.nonzeros);
    return {data, 1, n, n};
  }

  partita::mesh<Place> mesh_;
  blocking rows_;
  interval range_;
  global_index features_;
  tiles<T, Place> by_rows_;
  buffer<local_index, Place> row_of_, permutation_, by_columns_;
  buffer<T, Place> values_, transposed_values_;
};

}  // namespace partita
