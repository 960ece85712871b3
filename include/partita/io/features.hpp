// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vertex features in host memory, dense or in compressed rows, read the same way.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace partita::io {

/// A sparse rows x cols matrix in compressed rows: row i has the entries offsets[i] to offsets[i + 1].
/// Columns of a row come in any order; an entry that occurs twice counts as the sum.
struct csr_array {
  global_index rows = 0;
  global_index cols = 0;
  std::vector<global_index> offsets = {0};  ///< [rows + 1], ascending from 0 to the number of entries
  std::vector<global_index> columns;        ///< [entries], each in [0, cols)
  std::vector<float> values;                ///< [entries]
};

/// Features of `rows` vertices, `cols` each: dense when `dense` holds rows * cols values, otherwise in
/// `sparse`.
struct feature_table {
  global_index rows = 0;
  global_index cols = 0;
  std::vector<float> dense;  ///< [rows, cols], row-major; empty when the features are sparse
  csr_array sparse;          ///< [rows, cols]; without entries when the features are dense

  feature_table() = default;

  /// Features in compressed rows.
  explicit feature_table(csr_array features)
      : rows(features.rows), cols(features.cols), sparse(std::move(features)) {}

  /// Row-major features, row_count * col_count values. Throws shape_error when there are more or fewer.
  feature_table(global_index row_count, global_index col_count, std::vector<float> features)
      : rows(row_count), cols(col_count), dense(std::move(features)) {
    if (static_cast<global_index>(dense.size()) != rows * cols)
      throw_error<shape_error>(
          {"features of shape ", matrix_shape{rows, cols}, " cannot be made of ", dense.size(), " values"});
  }

  bool is_sparse() const { return dense.empty(); }

  /// out = the features of vertex `row`; shape: [cols].
  /// Throws shape_error when there is no such row or `out` has another length.
  void fill_row(global_index row, std::span<float> out) const {
    check_row(row);
    if (static_cast<global_index>(out.size()) != cols)
      throw_error<shape_error>({"a row of ", cols, " features does not fit into a span of ", out.size()});
    if (!is_sparse()) {
      const std::span<const float> values = dense_row(row);
      std::copy(values.begin(), values.end(), out.begin());
      return;
    }
    std::fill(out.begin(), out.end(), 0.0f);
    for (std::size_t k = begin(row); k < begin(row + 1); ++k)
      out[static_cast<std::size_t>(sparse.columns[k])] += sparse.values[k];
  }

  /// The sum of the features of vertex `row`, added up in double precision.
  /// Throws shape_error when there is no such row.
  float row_sum(global_index row) const {
    check_row(row);
    const std::span<const float> values =
        is_sparse() ? std::span(sparse.values).subspan(begin(row), begin(row + 1) - begin(row))
                    : dense_row(row);
    double sum = 0;
    for (float value : values) sum += static_cast<double>(value);
    return static_cast<float>(sum);
  }

 private:
  void check_row(global_index row) const {
    if (row < 0 || row >= rows)
      throw_error<shape_error>({"features have ", rows, " rows, there is no row ", row});
  }

  std::size_t begin(global_index row) const {
    return static_cast<std::size_t>(sparse.offsets[static_cast<std::size_t>(row)]);
  }

  std::span<const float> dense_row(global_index row) const {
    return std::span(dense).subspan(static_cast<std::size_t>(row * cols), static_cast<std::size_t>(cols));
  }
};

}  // namespace partita::io
