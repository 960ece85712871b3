// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The matrix of a graph in slices of rows, one for each chunk of vertices, and an X that changes chunk by
/// chunk.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/base/function.hpp"
#include "partita/sampling/block_matrix.hpp"
#include "partita/sampling/graph.hpp"
#include "partita/train/chunks.hpp"
#include "partita/transfer/gather_rows.hpp"

namespace partita::nn {

/// A part of the rows of a matrix with whole rows on each rank: `rows` as a blocking, of which this rank's
/// are [local.begin, local.end) of its block. A view, which may only be read if x is const; also of a matrix
/// on another mesh.
template <class Device, class Matrix>
std::remove_const_t<Matrix> part_of_rows(const mesh<Device>& m, const blocking& rows, interval local,
                                         Matrix& x) {
  const auto block = x.local().block(base::to_local(local.begin, "a row"), 0,
                                     base::to_local(local.size(), "a number of rows"), x.local().cols);
  return std::remove_const_t<Matrix>::view(m, rows, blocking::even(x.shape().cols, m.shape(), nesting::cols),
                                           block);
}

/// Rows of A as a block of `cols` columns: entry (i, column(v)) for each entry (rows[i], v) with column(v) >=
/// 0. Local.
template <class T, class Column>
sampling::block<T> block_of_rows(const sampling::graph<T>& a, const std::vector<global_index>& rows,
                                 global_index cols, Column column) {
  sampling::block<T> b{
      base::to_local(std::ssize(rows), "rows"), base::to_local(cols, "columns"), {0}, {}, {}};
  std::vector<std::pair<local_index, T>> row;
  for (const global_index v : rows) {
    const sampling::graph_row at = a.row(v);
    row.clear();
    for (std::size_t e = at.begin; e < at.begin + static_cast<std::size_t>(at.count); ++e)
      if (const local_index j = column(a.columns()[e]); j >= 0) row.emplace_back(j, a.values()[e]);
    std::ranges::sort(row, {}, &std::pair<local_index, T>::first);
    for (const auto& [j, value] : row) {
      b.columns.push_back(j);
      b.values.push_back(value);
    }
    b.offsets.push_back(base::to_local(std::ssize(b.columns), "entries of a block"));
  }
  return b;
}

/// The same as entries: (first_row + i, column(v)). Local.
template <class T, class Column>
std::vector<triplet<T>> entries_of_rows(const sampling::graph<T>& a, const std::vector<global_index>& rows,
                                        global_index first_row, Column column) {
  std::vector<triplet<T>> entries;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const sampling::graph_row at = a.row(rows[i]);
    for (std::size_t e = at.begin; e < at.begin + static_cast<std::size_t>(at.count); ++e)
      entries.push_back({first_row + static_cast<global_index>(i), column(a.columns()[e]), a.values()[e]});
  }
  return entries;
}

/// Products with row slices A_c (n_c x n) of A under a policy, and with their transposes, where X is kept as
/// a table (n x f) into which the rows of each chunk are written when they are known.
///
/// Where the policy, on this mesh, cuts A by rows alone, a rank's table has its own rows of X and copies of
/// those that its rows of A refer to besides, and products are local: each copied row of a chunk travels once
/// in `write`, the sum for it, the other way, in `read_sums`. Under other policies the table is X, without
/// copies, and each product is one of the policy. Collective over the mesh: all members; the first use of a
/// width plans its products.
///
/// Operands of products, X and dY, have numbers of S: T, or base::bfloat16 for an A of float, to which they
/// are rounded. Rows of X then travel, and tables keep them, in 2 bytes per number; sums are of T.
template <class T, class Device, class S = T>
class chunk_graph {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using stored = dense<S, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;
  using slice_matrix = sparse<T, dynamic_layout, Device>;

  /// `a`: A, cut by the rows of `chunks`.
  chunk_graph(const mesh<Device>& m, std::shared_ptr<const chunked_vertices> chunks,
              const sampling::graph<T>& a, const policy& p, spmm_options options = {})
      : mesh_(m),
        chunks_(std::move(chunks)),
        copies_(m.shape().size(p.sparse.rows) == m.size() && m.shape().size(p.dense.cols) == 1),
        of_table_(copies_ ? mesh<Device>(self::world(), mesh_shape{}, m.queue()) : m),
        options_(options),
        own_(chunks_->rows().block(vertex_rows.rows, m.at())),
        table_rows_(chunks_->rows()) {
    if (copies_) {
      find_copies(a);
      table_rows_ = rows_alone(own_.size() + copied_begins_.back());
    }
    for (std::size_t c = 0; c < chunks_->count(); ++c)
      slices_.push_back(slice(a, chunks_->part_rows(rank(), c), chunks_->rows(c), p));
  }

  const chunked_vertices& chunks() const { return *chunks_; }
  const mesh<Device>& mesh_of_rows() const { return mesh_; }
  /// Whether tables have copies of other ranks' rows, and products with them are local.
  bool copies() const { return copies_; }
  const mesh<Device>& mesh_of_table() const { return of_table_; }
  /// These rows of this rank's, which have the blocking `of_rows`, of A, to multiply a table.
  slice_matrix slice(const sampling::graph<T>& a, const std::vector<global_index>& rows,
                     const blocking& of_rows, const policy& p) const {
    if (copies_)
      return block_matrix(
          of_table_, block_of_rows(a, rows, table_rows_.size(), [&](global_index v) { return table_row(v); }),
          false);
    return slice(
        a, rows, of_rows, chunks_->rows(), [](global_index v) { return v; }, p);
  }
  /// The same without copies, for a matrix with the rows `cols`, in which vertex v has row column(v).
  template <class Column>
  slice_matrix slice(const sampling::graph<T>& a, const std::vector<global_index>& rows,
                     const blocking& of_rows, const blocking& cols, Column column, const policy& p) const {
    const global_index first = of_rows.block(vertex_rows.rows, mesh_.at()).begin;
    return distribute(mesh_, p.sparse, of_rows, cols, entries_of_rows(a, rows, first, column),
                      symmetry::one_way, p.dense);
  }
  /// The rows of chunk c in a matrix with all rows.
  template <class Matrix>
  auto part(std::size_t c, Matrix& x) const {
    return part_of_rows(mesh_, chunks_->rows(c), chunks_->local_part(rank(), c), x);
  }
  /// A table, N = S, or sums for one, N = T, filled with zeros.
  template <class N = S>
  dense<N, vertex_rows, Device> table(global_index width) const {
    dense<N, vertex_rows, Device> t(of_table_, table_rows_,
                                    columns(of_table_, width));  // (table rows, width)
    fill(t, N(0));
    return t;
  }

  /// The rows of chunk c in the table = x (n_c x f), a dense matrix.
  void write(std::size_t c, const operand& x, stored& table) {
    stored own = own_part(c, table);
    x.visit_dense([&](const auto& rows) { copy(seen_from_table(rows), own); });
    if (!travels()) return;
    gather_rows_plan<S, Device>& copies = plans_of(table.shape().cols).copies[c];
    const stored sent = part(c, std::as_const(table));
    stored copied = copied_part(c, table);
    copies.start(sent);
    copies.finish();
    copies.rows(0, sent, copied);
  }
  /// y = A_c X (n_c x f).
  void multiply(std::size_t c, const stored& table, matrix& y) {
    matrix out = seen_from_table(y);
    plans_of(table.shape().cols).forward[c](table, out);
  }
  /// sums += A_c^T dy.
  void multiply_transposed(std::size_t c, const matrix& dy, matrix& sums) {
    plans& p = plans_of(sums.shape().cols);
    if constexpr (is_rounded) {
      if (!p.rounded) p.rounded.emplace(mesh_, chunks_->rows(), dy.col_blocking());  // (n, f)
      stored rounded = part(c, *p.rounded);
      copy(dy, rounded);
      p.backward[c](1, seen_from_table(std::as_const(rounded)), 1, sums);
    } else {
      p.backward[c](1, seen_from_table(dy), 1, sums);
    }
  }
  /// The sums for the rows of chunk c, and those for their copies here, times `factor`.
  void scale(std::size_t c, T factor, matrix& sums) {
    matrix own = own_part(c, sums);
    transform(own, own, base::scaled<T>{factor});
    if (!travels()) return;
    matrix copied = copied_part(c, sums);
    transform(copied, copied, base::scaled<T>{factor});
  }
  /// dx (n_c x f) = the sums for the rows of chunk c, with those for their copies; they are 0 afterwards.
  void read_sums(std::size_t c, matrix& sums, matrix& dx) {
    matrix own = own_part(c, sums), out = seen_from_table(dx);
    copy(own, out);
    fill(own, T(0));
    if (!travels()) return;
    gather_rows_plan<T, Device>& copies = plans_of(sums.shape().cols).of_sums()[c];
    matrix copied = copied_part(c, sums);
    copies.add(0, copied);
    copies.scatter(dx);
    fill(copied, T(0));
  }

  /// What this rank receives in write and multiply, and in multiply_transposed and read_sums.
  traffic predicted(std::size_t c, global_index width) {
    return plans_of(width).forward[c].predicted() + predicted_write(c, width);
  }
  traffic predicted_write(std::size_t c, global_index width) {
    return travels() ? plans_of(width).copies[c].predicted() : traffic{};
  }
  traffic predicted_transposed(std::size_t c, global_index width) {
    plans& p = plans_of(width);
    return p.backward[c].predicted() + (travels() ? p.of_sums()[c].predicted_scatter() : traffic{});
  }
  /// Rows of other ranks of which this one keeps copies.
  global_index copied_rows() const { return copies_ ? copied_begins_.back() : 0; }

 private:
  static constexpr bool is_rounded = !std::is_same_v<S, T>;
  struct plans {
    std::vector<spmm_plan<T, Device, S>> forward, backward;
    std::vector<gather_rows_plan<S, Device>> copies;
    std::vector<gather_rows_plan<T, Device>> rounded_sums;  ///< where S is not T
    std::optional<stored> rounded;                          ///< what backward multiplies, likewise

    std::vector<gather_rows_plan<T, Device>>& of_sums() {
      if constexpr (is_rounded)
        return rounded_sums;
      else
        return copies;
    }
  };

  int rank() const { return mesh_.rank(); }
  bool travels() const { return copies_ && mesh_.size() > 1; }
  static blocking columns(const mesh<Device>& m, global_index width) {
    return blocking::even(width, m.shape(), nesting::cols);
  }
  blocking rows_alone(global_index rows) const {
    return blocking::even(rows, of_table_.shape(), nesting::rows);
  }

  /// The same block as a matrix on the mesh of the table.
  template <class Matrix>
  auto seen_from_table(Matrix& x) const {
    const auto rows = static_cast<global_index>(x.local().rows);
    return part_of_rows(of_table_, copies_ ? rows_alone(rows) : x.row_blocking(), {0, rows}, x);
  }
  template <class Matrix>
  Matrix own_part(std::size_t c, Matrix& table) const {
    const interval local = chunks_->local_part(rank(), c);
    return part_of_rows(of_table_, copies_ ? rows_alone(local.size()) : chunks_->rows(c), local, table);
  }
  template <class Matrix>
  Matrix copied_part(std::size_t c, Matrix& table) const {
    const interval local{own_.size() + copied_begins_[c], own_.size() + copied_begins_[c + 1]};
    return part_of_rows(of_table_, rows_alone(local.size()), local, table);
  }

  /// The rows of others that this rank's rows of A refer to, by chunk and row.
  void find_copies(const sampling::graph<T>& a) {
    copied_.resize(chunks_->count());
    std::vector<local_index> found(a.columns());
    std::ranges::sort(found);
    const auto end = std::unique(found.begin(), found.end());
    for (auto v = found.begin(); v != end; ++v)
      if (!own_.contains(*v)) {
        const auto [c, row] = chunks_->place(*v);
        copied_[c].push_back(row);
      }
    copied_begins_.assign(1, 0);
    for (const auto& rows : copied_) copied_begins_.push_back(copied_begins_.back() + std::ssize(rows));
  }
  /// The row of vertex v in the table.
  local_index table_row(global_index v) const {
    if (own_.contains(v)) return static_cast<local_index>(v - own_.begin);
    const auto [c, row] = chunks_->place(v);
    const auto at = std::lower_bound(copied_[c].begin(), copied_[c].end(), row) - copied_[c].begin();
    return static_cast<local_index>(own_.size() + copied_begins_[c] + at);
  }
  plans& plans_of(global_index width) {
    plans& p = plans_[width];
    for (std::size_t c = p.forward.size(); c < chunks_->count(); ++c) {
      p.forward.emplace_back(slices_[c], vertex_rows, columns(of_table_, width), options_);
      p.backward.emplace_back(transposed(slices_[c]), vertex_rows, columns(of_table_, width), options_);
      if (!travels()) continue;
      const partition::block_layout of{chunks_->rows(c), columns(mesh_, width), vertex_rows};
      p.copies.emplace_back(mesh_, of).assign(copied_[c]);
      if constexpr (is_rounded) p.rounded_sums.emplace_back(mesh_, of).assign(copied_[c]);
    }
    return p;
  }

  mesh<Device> mesh_;
  std::shared_ptr<const chunked_vertices> chunks_;
  bool copies_;
  mesh<Device> of_table_;
  spmm_options options_;
  interval own_;
  std::vector<std::vector<global_index>> copied_;  ///< of each chunk, as rows of it
  std::vector<global_index> copied_begins_;
  blocking table_rows_;
  std::vector<slice_matrix> slices_;
  std::map<global_index, plans> plans_;
};

}  // namespace partita::nn
