// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrices, dense and sparse, as functions of their global indices, what to hold results against, the meshes
// and layouts they are tried on, and what the rules of the design say that a rank receives, counted element
// by element.
#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/meshes.hpp"

namespace test_support {

template <class T = double, layout L = dynamic_layout>
using host_dense = partita::dense<T, L, partita::host>;

/// Element (i, j) of test matrix number `field`: between -1/2 and 1/2.
inline double element(global_index i, global_index j, std::uint64_t field = 0) {
  return partita::base::random_uniform(partita::random_key{11, field, 0}.word(), i, j) - 0.5;
}
/// Test matrix number `field` as a function.
inline auto field(std::uint64_t number) {
  return [number](global_index i, global_index j) { return element(i, j, number); };
}

/// Directed, weighted, about one entry in `sparsity`; row 3 and column 4 (mod 11) are empty.
inline std::vector<triplet<double>> sparse_entries(matrix_shape shape, std::uint64_t sparsity = 5) {
  std::vector<triplet<double>> entries;
  for (global_index i = 0; i < shape.rows; ++i)
    for (global_index j = 0; j < shape.cols; ++j)
      if (i % 11 != 3 && j % 11 != 4 && partita::base::random_bits(17, i, j) % sparsity == 0)
        entries.push_back({i, j, std::cos(static_cast<double>(i + 2 * j))});
  return entries;
}

/// Every size-th entry, beginning with the rank's.
template <class T>
std::vector<triplet<T>> share(const std::vector<triplet<T>>& entries, int rank, int size) {
  std::vector<triplet<T>> mine;
  for (auto e = static_cast<std::size_t>(rank); e < entries.size(); e += static_cast<std::size_t>(size))
    mine.push_back(entries[e]);
  return mine;
}
template <class T>
std::vector<triplet<T>> share(const std::vector<triplet<T>>& entries, const auto& mesh) {
  return share(entries, mesh.rank(), mesh.size());
}

/// Every mesh up to 3 x 3 x 3.
inline std::vector<mesh_shape> every_small_mesh() {
  std::vector<mesh_shape> meshes;
  for (int row = 1; row <= 3; ++row)
    for (int col = 1; col <= 3; ++col)
      for (int depth = 1; depth <= 3; ++depth) meshes.push_back({row, col, depth});
  return meshes;
}
/// A few: one rank, single axes, pairs of axes, all three, square and not.
inline constexpr std::array<mesh_shape, 10> some_meshes = {{{1, 1, 1},
                                                            {3, 1, 1},
                                                            {1, 3, 1},
                                                            {1, 1, 2},
                                                            {2, 3, 1},
                                                            {3, 1, 2},
                                                            {1, 2, 2},
                                                            {2, 2, 2},
                                                            {3, 2, 2},
                                                            {2, 3, 3}}};

/// Every layout: each axis in the rows, in the columns or in neither.
inline std::vector<layout> every_layout() {
  std::vector<layout> layouts;
  for (unsigned rows = 0; rows < 8; ++rows)
    for (unsigned cols = 0; cols < 8; ++cols)
      if ((rows & cols) == 0) layouts.push_back({axis_set(rows), axis_set(cols)});
  return layouts;
}

/// Layouts of the policies' dense operands, the two that serve every policy, and some that only a user
/// writes.
inline constexpr std::array<layout, 9> some_layouts = {{{axis::row, {}},
                                                        {axis::row, axis::col},
                                                        {axis::row | axis::depth, axis::col},
                                                        {{}, axis::col},
                                                        partita::vertex_rows,
                                                        partita::replicated,
                                                        {axis::row, axis::col | axis::depth},
                                                        {{}, partita::partition::every_axis},
                                                        {axis::depth, axis::col | axis::row}}};

/// visitor(layout) for each of them.
void for_each_layout(auto visitor) {
  for (const layout l : some_layouts) visitor(l);
}

/// body(mesh, layout, shape) on some meshes for some layouts and every shape, from an empty ledger.
void on_some_layouts(const auto& shapes, auto body) {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [&](const host_mesh& m) {
      for (const matrix_shape size : shapes)
        for_each_layout([&](layout l) {
          m.ledger().clear();
          body(m, l, size);
        });
    });
}

/// The whole matrix f, row-major, rows x cols.
template <class T = double, class Function>
std::vector<T> whole(matrix_shape shape, Function f) {
  std::vector<T> values;
  for (global_index i = 0; i < shape.rows; ++i)
    for (global_index j = 0; j < shape.cols; ++j) values.push_back(static_cast<T>(f(i, j)));
  return values;
}
template <class T>
partita::matrix_view<const T> view_of(const std::vector<T>& values, matrix_shape shape) {
  return {values.data(), static_cast<partita::local_index>(shape.rows),
          static_cast<partita::local_index>(shape.cols), shape.cols};
}

/// A X or A^T X (row-major) of test matrix 0, entry by entry.
inline std::vector<double> product(std::span<const triplet<double>> entries, matrix_shape shape,
                                   global_index width, bool transposed) {
  std::vector<double> y(static_cast<std::size_t>((transposed ? shape.cols : shape.rows) * width), 0);
  for (const auto& e : entries) {
    const global_index to = transposed ? e.col : e.row, from = transposed ? e.row : e.col;
    for (global_index j = 0; j < width; ++j)
      y[static_cast<std::size_t>(to * width + j)] += e.value * element(from, j);
  }
  return y;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double d = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    d = std::isnan(a[i]) ? INFINITY : std::max(d, std::abs(a[i] - b[i]));
  return d;
}

/// How many elements of this rank's block of x differ from f by more than `tolerance` (NaN differs).
template <class T, layout L, class Function>
std::size_t mismatches(const host_dense<T, L>& x, Function f, double tolerance = 0) {
  const interval rows = x.row_range(), cols = x.col_range();
  const auto local = x.local();
  std::size_t count = local.rows == rows.size() && local.cols == cols.size() ? 0 : 1;
  for (global_index i = rows.begin; i < rows.end; ++i)
    for (global_index j = cols.begin; j < cols.end; ++j) {
      const double got = static_cast<double>(local(static_cast<partita::local_index>(i - rows.begin),
                                                   static_cast<partita::local_index>(j - cols.begin)));
      if (!(std::abs(got - static_cast<double>(f(i, j))) <= tolerance)) ++count;
    }
  return count;
}

/// Checks this rank's block of x against f(i, j).
template <class T, layout L, class Function>
void check_equals(const host_dense<T, L>& x, Function f, double tolerance, const char* what) {
  CHECK_MESSAGE(mismatches(x, f, tolerance) == 0, what, ": ", to_string(x.shape()), " on mesh ",
                to_string(x.mesh().shape()), ", ", to_string(x.layout()), ", rank ", x.mesh().rank());
}
/// The same against a row-major matrix.
template <class T, layout L>
void check_equals(const host_dense<T, L>& x, const std::vector<T>& expected, double tolerance,
                  const char* what) {
  const global_index width = x.shape().cols;
  CHECK(static_cast<global_index>(expected.size()) == x.shape().rows * width);
  const auto at = [&](global_index i, global_index j) {
    return expected[static_cast<std::size_t>(i * width + j)];
  };
  check_equals(x, at, tolerance, what);
}

/// What this rank receives when a matrix goes from one layout to another: the elements of its new block that
/// are not in its old one, each from the owner that differs from this rank only in axes of the old layout.
inline traffic redistributed(mesh_shape shape, coordinates me, const blocking& rows, const blocking& cols,
                             layout from, layout to) {
  const interval old_rows = rows.block(from.rows, me), old_cols = cols.block(from.cols, me);
  const interval new_rows = rows.block(to.rows, me), new_cols = cols.block(to.cols, me);
  const auto meets = [](interval a, interval b) {
    return std::max(a.begin, b.begin) < std::min(a.end, b.end);
  };
  traffic v;
  for (global_index i = new_rows.begin; i < new_rows.end; ++i)
    for (global_index j = new_cols.begin; j < new_cols.end; ++j)
      if (!old_rows.contains(i) || !old_cols.contains(j)) ++v.words;
  for (int q = 0; q < shape.size(); ++q) {
    const coordinates other = shape.at(q);
    bool peer = other != me;
    for (axis a : partita::partition::all_axes) peer = peer && (from.used().contains(a) || other[a] == me[a]);
    if (peer && meets(rows.block(from.rows, other), new_rows) &&
        meets(cols.block(from.cols, other), new_cols))
      ++v.messages;
  }
  return v;
}

/// What member `rank` of `size` receives in an all-reduce of `count` elements: the others' parts of the share
/// that it sums, and the sums of the other shares.
inline traffic all_reduced(global_index count, int rank, int size) {
  if (size == 1) return {};
  const global_index share = count / size + (rank < count % size ? 1 : 0);
  const global_index others = std::min<global_index>(count, size) - (share > 0 ? 1 : 0);
  return {(size - 1) * share + (count - share), (share > 0 ? size - 1 : 0) + others};
}

/// What this rank received since `clear`.
inline traffic heard(const host_mesh& m) { return m.ledger().total(); }

/// plan(operands...), which receives what it predicts.
void run_as_predicted(const host_mesh& m, auto& plan, auto&&... operands) {
  m.ledger().clear();
  plan(operands...);
  CHECK(m.ledger().total() == plan.predicted());
}
/// The same of a plan that has run before, and allocates nothing any more.
void run_again(const host_mesh& m, auto& plan, auto&&... operands) {
  const auto allocations = m.queue().meter()->allocations();
  run_as_predicted(m, plan, operands...);
  CHECK(m.queue().meter()->allocations() == allocations);
}

inline bool same(traffic a, traffic b, const char* what) {
  CHECK_MESSAGE(a == b, what, ": ", a.words, " elements in ", a.messages, " messages, not ", b.words, " in ",
                b.messages);
  return a == b;
}

/// What a training has learned, one matrix after the other.
template <class Training>
auto all_values(Training& training) {
  auto dict = training.values();
  decltype(dict.front().values) all;
  for (const auto& p : dict) all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}

}  // namespace test_support
