// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums over all ranks on a reproducible mesh: terms are rounded to a grid, the same for every arrangement,
/// so that the result does not depend on the order of summation.

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "partita/base/exact_grid.hpp"
#include "partita/comm/mesh.hpp"
#include "partita/local/exact.hpp"
#include "partita/matrix/dense.hpp"

namespace partita::algebra::detail {

/// The grid for sums of at most `terms` products of a number up to `x` and a number up to `y`, the
/// magnitudes on this rank; on a part of a mesh, for the terms of all parts. Collective over mesh::whole.
/// What travels: an all-reduce of two elements and, on a part, another one of one.
template <class Device>
base::exact_grid common_grid(const mesh<Device>& m, double x, double y, global_index terms) {
  std::array<double, 2> largest{x, y};
  if (m.whole().size() > 1) m.whole().all_reduce(largest, reduction::max);
  if (m.is_part()) terms = m.whole().all_reduce(terms);
  return base::exact_grid::of_products(largest[0], largest[1], terms);
}

/// What this rank receives in an all-reduce of this many elements over mesh::whole, and common_grid.
template <class Device>
traffic predicted_all_reduce(const mesh<Device>& m, global_index count) {
  comm::collective op;
  op.kind = operation::all_reduce;
  op.count = count;
  return received(op, m.whole().rank(), m.whole().size());
}
template <class Device>
traffic predicted_grid(const mesh<Device>& m) {
  return predicted_all_reduce(m, 2) + (m.is_part() ? predicted_all_reduce(m, 1) : traffic{});
}

/// Where the sums of each grid are in memory for rows x cols of them, one grid after the other.
template <class T>
auto views_of_levels(double* sums, local_index rows, local_index cols) {
  std::array<matrix_view<double>, base::exact_sums<T>> views;
  for (matrix_view<double>& of_level : views) {
    of_level = {sums, rows, cols, cols};
    sums += static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  return views;
}

/// result = the sums over the ranks along `axes` of what fill(sums) writes on each of them: for each element
/// of result a sum on the first grid, after all of them those on the second. On a part of a mesh over
/// mesh::whole, unless there are no axes. Collective over these ranks. What travels: an all-reduce of
/// exact_sums<T> doubles per element.
template <class T, class Device, class Fill>
void sum_over_ranks(const mesh<Device>& m, axis_set axes, std::span<T> result, Fill fill) {
  buffer<double, Device> sums(m.queue(), base::exact_sums<T> * result.size());
  fill(sums.data());
  const mesh<Device> exact = m.with_exact_sums();
  const bool over_parts = exact.is_part() && !axes.empty();
  if (const auto& group = over_parts ? exact.whole() : exact.along(axes); group.size() > 1)
    group.all_reduce(sums.span());
  round_sums(m.queue(), std::span<const double>(sums.span()), 1.0, result);
}

/// The same of what fill(part, sums) writes for each grid: sums of part(term).
template <class T, class Device, class Fill>
void sum_over_ranks(const mesh<Device>& m, axis_set axes, const base::exact_grid& grid, std::span<T> result,
                    Fill fill) {
  sum_over_ranks(m, axes, result, [&](double* sums) {
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      fill(part, sums + static_cast<std::size_t>(level) * result.size());
    });
  });
}

/// What this rank receives in sum_over_ranks.
template <class T, class Device>
traffic predicted_sums(const mesh<Device>& m, axis_set axes, global_index elements) {
  comm::collective op;
  op.kind = operation::all_reduce;
  op.count = base::exact_sums<T> * elements;
  if (m.is_part() && !axes.empty()) return predicted_all_reduce(m, op.count);
  return received(op, partition::rank_in_group(m.shape(), axes, m.at()), m.shape().size(axes));
}

/// The sum of all ranks' numbers over the ranks along `axes`; the mesh has at most `terms` numbers.
/// Collective over mesh::whole. What travels: as in common_grid, and an all-reduce of two elements.
template <class T, class Device>
double exact_total(const mesh<Device>& m, axis_set axes, matrix_view<const T> x, global_index terms) {
  const auto& q = m.queue();
  const auto grid = common_grid(m, magnitude(q, x), 1, terms);
  double total[] = {0};
  sum_over_ranks(m, axes, grid, std::span<double>(total), [&](auto part, double* sums) {
    std::vector<double> of_columns(static_cast<std::size_t>(x.cols));
    exact_column_sums(q, x, part, of_columns.data());
    sums[0] = 0;
    for (const double s : of_columns) sums[0] += s;
  });
  return total[0];
}

}  // namespace partita::algebra::detail
