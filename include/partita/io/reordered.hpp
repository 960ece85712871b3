// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A dataset whose vertices are in the order of their parts, so that each part is a block of rows.

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/io/dataset_type.hpp"

namespace partita::io {

/// A dataset with its vertices in another order.
struct reordered_dataset {
  dataset data;
  std::vector<global_index> sizes;       ///< vertices of each part, for blocking::given
  std::vector<global_index> old_number;  ///< [n], of each new vertex
};

namespace detail {

/// Rows of `width` values: row i of the result is row rows[i] of `values`; nothing if there are no values.
template <class T>
array<T> rows_of(const array<T>& values, std::span<const global_index> rows, global_index width) {
  std::vector<T> result;
  result.reserve(values.size());
  if (values.empty()) return result;
  for (const global_index row : rows)
    result.insert(result.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  return result;
}

}  // namespace detail

/// The dataset with its vertices sorted by (part, old number); edges keep their order and get new ends. Part
/// p has vertex sizes[0] + ... + sizes[p - 1] and the sizes[p] - 1 after it; a part may be empty.
///
/// `parts` (n), each in [0, part_count). A dataset without features stays without; types of vertices, whose
/// rows are no longer together, are left out. Local. Throws shape_error
/// if `parts` has another length or a number that is not a part.
inline reordered_dataset reordered(dataset data, std::span<const int> parts, int part_count) {
  const auto n = static_cast<std::size_t>(data.vertices);
  if (parts.size() != n || part_count < 1)
    base::throw_error<shape_error>({data.name, ": ", parts.size(), " numbers of ", part_count, " parts for ",
                                    data.vertices, " vertices"});
  reordered_dataset result;
  result.sizes.assign(static_cast<std::size_t>(part_count), 0);
  for (std::size_t v = 0; v < n; ++v) {
    if (parts[v] < 0 || parts[v] >= part_count)
      base::throw_error<shape_error>(
          {data.name, ": vertex ", v, " is in part ", parts[v], " of ", part_count});
    ++result.sizes[static_cast<std::size_t>(parts[v])];
  }

  std::vector<global_index> next(result.sizes.size());
  std::exclusive_scan(result.sizes.begin(), result.sizes.end(), next.begin(), global_index{0});
  std::vector<global_index> new_number(n);
  result.old_number.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    new_number[v] = next[static_cast<std::size_t>(parts[v])]++;
    result.old_number[static_cast<std::size_t>(new_number[v])] = static_cast<global_index>(v);
  }

  for (array<edge>* const edges : {&data.edges, &data.validation_links, &data.test_links})
    for (edge& e : edges->edit())
      e = {new_number[static_cast<std::size_t>(e.source)], new_number[static_cast<std::size_t>(e.target)]};
  for (link_negatives& negatives : data.negatives)
    for (std::int64_t& v : negatives.vertices.edit()) v = new_number[static_cast<std::size_t>(v)];
  if (data.vertex_features.rows > 0) data.vertex_features = data.vertex_features.rows_at(result.old_number);
  data.labels = detail::rows_of(data.labels, result.old_number, 1);
  data.label_matrix = detail::rows_of(data.label_matrix, result.old_number, data.classes);
  data.values = detail::rows_of(data.values, result.old_number, data.classes);
  data.split = detail::rows_of(data.split, result.old_number, 1);
  data.vertex_types = {};
  result.data = std::move(data);
  return result;
}

}  // namespace partita::io
