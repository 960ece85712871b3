// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables of features in mapped files. Needs POSIX.

#include <cmath>
#include <string>
#include <utility>

#include "partita/io/features.hpp"
#include "partita/io/mapped_npy.hpp"

namespace partita::io {

/// The features in `name`, float32 or float64 [rows, columns], precision preserved; there is one row per
/// `what`. Local. Throws input_error naming the file, and its shape if that is wrong.
inline feature_table map_features(const std::string& name, const std::string& what) {
  const auto table = [&]<class T>(mapped_array<T> mapped) {
    if (mapped.shape.size() != 2)
      detail::fail(name, "expected a row of features for each " + what + ", found the shape " +
                             detail::shape_text(mapped.shape));
    const global_index rows = mapped.shape[0], cols = mapped.shape[1];
    if (rows > 0 && cols > 0) return feature_table(rows, cols, std::move(mapped.values));
    feature_table empty;
    empty.rows = rows, empty.cols = cols;
    return empty;
  };
  return read_npy_header(name).descr == "<f8" ? table(map_npy<double>(name)) : table(map_npy<float>(name));
}

namespace detail {

/// Whether a feature in this row, of a `what`, is negative. Throws input_error unless all are finite.
inline bool has_negative(const feature_table& table, global_index row, const char* what,
                         const std::string& name) {
  bool found = false;
  table.for_row(row, [&](global_index feature, auto value) {
    found |= value < 0;
    if (!std::isfinite(value))
      fail(name, "feature " + std::to_string(feature) + " of " + what + ' ' + std::to_string(row) + " is " +
                     std::to_string(value) + ", which is not a finite number");
  });
  return found;
}

}  // namespace detail

}  // namespace partita::io
