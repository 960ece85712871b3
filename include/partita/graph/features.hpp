// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The features of a graph's vertices as matrices.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "partita/io/dataset_type.hpp"
#include "partita/matrix/sparse_rows.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::graph {

/// Whether features are divided by their row sums: unless `raw`, or an entry of any row is negative, since
/// sums that cancel would turn signs and magnify what is left.
inline bool divides_features(const io::dataset& data, bool raw) {
  return !raw && !data.vertex_features.has_negative();
}

/// The scale factor of vertex v's features: 1 / their sum, or 1 where features are not divided and where the
/// sum or its inverse is zero or not finite in T.
template <class T>
T feature_scale(const io::dataset& data, global_index v, bool raw) {
  if (!divides_features(data, raw)) return T(1);
  const T sum = static_cast<T>(data.vertex_features.row_sum(v)), scale = T(1) / sum;
  return std::isfinite(sum) && std::isfinite(scale) ? scale : T(1);
}

/// Throws input_error for scaled features of vertex v that are not finite in T.
template <class T>
void require_features(const io::dataset& data, global_index v, std::span<const T> values,
                      global_index first = 0) {
  const char* const type = sizeof(T) == 4 ? "f32" : "f64";
  for (std::size_t j = 0; j < values.size(); ++j)
    if (!std::isfinite(values[j]))
      base::throw_error<input_error>({data.name, ": feature ", first + static_cast<global_index>(j),
                                      " of vertex ", v, " is not a finite number in ", type});
}

/// The scaled features of these vertices, this rank's rows of a matrix (n x f) with row blocking `rows`, in T
/// and stored as S. Local; no communication.
template <class T, class S = T, class Device>
dense<S, vertex_rows, Device> features_of(const mesh<Device>& m, const io::dataset& data, bool raw,
                                          const blocking& rows, const std::vector<global_index>& vertices) {
  const blocking columns = blocking::even(data.features, m.shape(), nesting::cols);
  dense<S, vertex_rows, Device> x(m, rows, columns);  // (n, f)
  const auto width = static_cast<std::size_t>(data.features);
  const std::size_t rows_at_a_time = std::max<std::size_t>(1, (std::size_t{1} << 18) / width);
  std::vector<T> values;
  for (std::size_t i = 0; i < vertices.size(); i += rows_at_a_time) {
    const std::size_t count = std::min(rows_at_a_time, vertices.size() - i);
    values.resize(count * width);
    for (std::size_t k = 0; k < count; ++k) {
      const std::span<T> row = std::span(values).subspan(k * width, width);
      data.vertex_features.fill_row(vertices[i + k], row);
      const T scale = feature_scale<T>(data, vertices[i + k], raw);
      for (T& value : row) value *= scale;
      require_features<T>(data, vertices[i + k], row);
    }
    if constexpr (std::is_same_v<S, T>) {
      copy(m.queue(), std::span<const T>(values), x.values().subspan(i * width, values.size()));
    } else {
      const std::vector<S> stored(values.begin(), values.end());
      copy(m.queue(), std::span<const S>(stored), x.values().subspan(i * width, values.size()));
    }
    if (i / rows_at_a_time % 64 == 63) data.vertex_features.forget();
  }
  return x;
}
/// As above, for a dataset with CSR features.
template <class T, class Device>
sparse_rows<T, Device> sparse_features_of(const mesh<Device>& m, const io::dataset& data, bool raw,
                                          const blocking& rows, const std::vector<global_index>& vertices) {
  global_index row = rows.block(vertex_rows.rows, m.at()).begin;
  std::vector<triplet<T>> entries;
  for (const global_index v : vertices) {
    const T scale = feature_scale<T>(data, v, raw);
    data.vertex_features.for_row(v, [&](global_index feature, auto value) {
      entries.push_back({row, feature, static_cast<T>(value) * scale});
      require_features<T>(data, v, {&entries.back().value, 1}, feature);
    });
    ++row;
  }
  return {m, rows, data.features, std::move(entries)};
}

/// The vertices of this rank's rows in the blocking `rows`. Local.
template <class Device>
std::vector<global_index> vertices_here(const mesh<Device>& m, const blocking& rows) {
  const interval mine = rows.block(vertex_rows.rows, m.at());
  std::vector<global_index> vertices(static_cast<std::size_t>(mine.size()));
  std::iota(vertices.begin(), vertices.end(), mine.begin);
  return vertices;
}

/// The scaled features of this rank's vertices (n x f), with row blocking `rows`. Local; no communication.
template <class T, class Device>
dense<T, vertex_rows, Device> local_features(const mesh<Device>& m, const io::dataset& data, bool raw,
                                             const blocking& rows) {
  return features_of<T>(m, data, raw, rows, vertices_here(m, rows));
}
template <class T, class Device>
dense<T, vertex_rows, Device> local_features(const mesh<Device>& m, const io::dataset& data, bool raw) {
  return local_features<T>(m, data, raw, blocking::even(data.vertices, m.shape(), nesting::rows));
}
/// How many entries of CSR features this rank would store. Local.
template <class Device>
std::size_t stored_features(const mesh<Device>& m, const io::dataset& data, const blocking& rows) {
  std::size_t stored = 0;
  for (const global_index v : vertices_here(m, rows))
    data.vertex_features.for_row(v, [&](global_index, auto) { ++stored; });
  return stored;
}

/// This rank's columns of the scaled features of all vertices (n x f), cut over all ranks, in T and stored as
/// S. Local; no communication.
template <class T, class S = T, class Device>
dense<S, dynamic_layout, Device> local_feature_columns(const mesh<Device>& m, const io::dataset& data,
                                                       bool raw) {
  dense<S, dynamic_layout, Device> x(m, layout{{}, partition::every_axis},
                                     {data.vertices, data.features});  // (n, f)
  const interval mine = x.col_range();
  std::vector<T> row(static_cast<std::size_t>(data.features));
  std::vector<S> values;
  values.reserve(x.values().size());
  for (global_index v = 0; v < data.vertices; ++v) {
    data.vertex_features.fill_row(v, row);
    const T scale = feature_scale<T>(data, v, raw);
    for (T& value : row) value *= scale;
    require_features<T>(data, v, row);
    for (global_index j = mine.begin; j < mine.end; ++j)
      values.emplace_back(row[static_cast<std::size_t>(j)]);
  }
  copy(m.queue(), std::span<const S>(values), x.values());
  return x;
}

}  // namespace partita::graph
