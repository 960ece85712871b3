// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vertex features in host memory: dense or CSR, in single or double precision, behind one interface.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/io/array.hpp"

namespace partita::io {

/// A sparse rows x cols matrix in CSR format: row i has the entries [offsets[i], offsets[i + 1]). Columns may
/// be unsorted; duplicates are summed.
template <class T = double>
struct csr_array {
  global_index rows = 0;
  global_index cols = 0;
  std::vector<global_index> offsets = {0};  ///< [rows + 1], nondecreasing from 0 to the number of entries
  std::vector<global_index> columns;        ///< [entries], each in [0, cols)
  std::vector<T> values;                    ///< [entries]
};

namespace detail {

using feature_values = std::variant<csr_array<float>, csr_array<double>, array<float>, array<double>>;

/// f(the array); compiles in a fraction of std::visit's time.
template <class F>
auto visit(const feature_values& values, const F& f) {
  if (const auto* list = std::get_if<csr_array<float>>(&values)) return f(*list);
  if (const auto* list = std::get_if<csr_array<double>>(&values)) return f(*list);
  if (const auto* list = std::get_if<array<float>>(&values)) return f(*list);
  return f(std::get<array<double>>(values));
}

}  // namespace detail

/// Features of `rows` vertices, `cols` each, dense or CSR, in their original precision.
class feature_table {
 public:
  global_index rows = 0;
  global_index cols = 0;

  feature_table() = default;

  /// From features in CSR format.
  template <std::floating_point T>
  explicit feature_table(csr_array<T> features)
      : rows(features.rows), cols(features.cols), values_(std::move(features)) {
    has_negative_ = any_negative();
  }

  /// From row-major features (row_count x col_count). Throws shape_error if the number of values differs.
  feature_table(global_index row_count, global_index col_count, array<float> features)
      : feature_table(row_count, col_count, std::move(features), features.size()) {}
  template <std::same_as<double> T>
  feature_table(global_index row_count, global_index col_count, std::vector<T> features)
      : feature_table(row_count, col_count, array<double>(std::move(features))) {}
  template <std::same_as<double> T>
  feature_table(global_index row_count, global_index col_count, array<T> features)
      : feature_table(row_count, col_count, std::move(features), features.size()) {}

  bool is_sparse() const {
    return detail::visit(values_, [](const auto& values) {
      return requires { values.offsets; };
    });
  }

  /// Whether an entry is negative: determined when the table is made, unless the values are in a mapped
  /// file; then whoever reads them reports it.
  bool has_negative() const { return has_negative_; }
  void set_has_negative(bool found) { has_negative_ = found; }

  /// Calls visit(column, value) for each stored feature of vertex `row`, in storage order. Throws
  /// shape_error if `row` is out of range.
  template <class Visit>
  void for_row(global_index row, Visit visit) const {
    require_row(row);
    detail::visit(values_, [&](const auto& values) {
      if constexpr (requires { values.offsets; }) {
        const auto i = static_cast<std::size_t>(row);
        const auto end = static_cast<std::size_t>(values.offsets[i + 1]);
        for (auto e = static_cast<std::size_t>(values.offsets[i]); e < end; ++e)
          visit(values.columns[e], values.values[e]);
      } else {
        for (global_index j = 0; j < cols; ++j) visit(j, values[static_cast<std::size_t>(row * cols + j)]);
      }
    });
  }

  /// out = the features of vertex `row`, converted to the precision of `out`; shape: [cols]. Throws
  /// shape_error if `row` is out of range or `out` has another length.
  void fill_row(global_index row, std::span<float> out) const { fill(row, out); }
  void fill_row(global_index row, std::span<double> out) const { fill(row, out); }

  /// The rows `which`, in any order: row i of the result is row which[i] here, stored as it is here. Shape:
  /// [which.size(), cols]. has_negative() is as here. Throws shape_error if one is out of range.
  feature_table rows_at(std::span<const global_index> which) const {
    for (const global_index row : which) require_row(row);
    feature_table found = detail::visit(values_, [&](const auto& values) { return copied(which, values); });
    found.has_negative_ = has_negative_;
    return found;
  }

  /// The sum of the features of vertex `row`, accumulated in double precision and rounded to the features'
  /// precision. Throws shape_error if `row` is out of range.
  double row_sum(global_index row) const {
    double sum = 0, rounded = 0;
    for_row(row, [&]<class T>(global_index, T value) {
      sum += static_cast<double>(value);
      rounded = static_cast<double>(static_cast<T>(sum));
    });
    return rounded;
  }

  /// See array::forget.
  void forget() const {
    detail::visit(values_, [](const auto& values) {
      if constexpr (requires { values.forget(); }) values.forget();
    });
  }

 private:
  template <class Values>
  feature_table(global_index row_count, global_index col_count, Values&& features, std::size_t count)
      : rows(row_count), cols(col_count), values_(std::move(features)) {
    if (static_cast<global_index>(count) != rows * cols)
      base::throw_error<shape_error>(
          {"features of shape ", matrix_shape{rows, cols}, " cannot be made of ", count, " values"});
    has_negative_ = any_negative();
  }

  bool any_negative() const {
    return detail::visit(values_, [](const auto& values) {
      const auto found = [](const auto& list) {
        return std::any_of(list.begin(), list.end(), [](auto value) { return value < 0; });
      };
      if constexpr (requires { values.offsets; })
        return found(values.values);
      else
        return !values.is_mapped() && found(values);
    });
  }

  template <class Values>
  feature_table copied(std::span<const global_index> which, const Values& values) const {
    const auto count = static_cast<global_index>(which.size());
    const auto append = [](auto& to, const auto& from, global_index begin, global_index end) {
      to.insert(to.end(), from.begin() + begin, from.begin() + end);
    };
    Values result{};
    if constexpr (requires { values.offsets; }) {
      result.rows = count, result.cols = cols;
      for (const global_index row : which) {
        const global_index begin = values.offsets[static_cast<std::size_t>(row)];
        const global_index end = values.offsets[static_cast<std::size_t>(row) + 1];
        append(result.columns, values.columns, begin, end);
        append(result.values, values.values, begin, end);
        result.offsets.push_back(static_cast<global_index>(result.columns.size()));
      }
      return feature_table(std::move(result));
    } else {
      result.edit().reserve(which.size() * static_cast<std::size_t>(cols));
      for (const global_index row : which) append(result.edit(), values, row * cols, (row + 1) * cols);
      return feature_table(count, cols, std::move(result));
    }
  }

  void require_row(global_index row) const {
    if (row < 0 || row >= rows)
      base::throw_error<shape_error>({"features have ", rows, " rows, there is no row ", row});
  }

  template <class T>
  void fill(global_index row, std::span<T> out) const {
    require_row(row);
    if (static_cast<global_index>(out.size()) != cols)
      base::throw_error<shape_error>(
          {"a row of ", cols, " features does not fit into a span of ", out.size()});
    std::fill(out.begin(), out.end(), T(0));
    for_row(row,
            [&](global_index j, auto value) { out[static_cast<std::size_t>(j)] += static_cast<T>(value); });
  }

  detail::feature_values values_;
  bool has_negative_ = false;
};

}  // namespace partita::io
