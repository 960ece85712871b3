// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Chunks together with the vertices of other chunks that they read.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/train/chunk_graph.hpp"

namespace partita::nn {

/// The vertices of other chunks with an edge into chunk c, its halo. The chunk extended by it has on each
/// rank first the chunk's rows, then those of the halo.
class chunk_halo {
 public:
  /// `rows`: of the halo, rows of the whole, ascending.
  chunk_halo(const chunked_vertices& all, std::size_t c, std::vector<global_index> rows)
      : all_(&all), chunk_(c), rows_(std::move(rows)), halo_(blocked({})), extended_(halo_) {
    std::vector<global_index> halo, extended;
    for (int r = 0; r < ranks(); ++r) {
      const interval block = all.rows().block(vertex_rows.rows, at(r));
      const auto first = std::ranges::lower_bound(rows_, block.begin),
                 end = std::ranges::lower_bound(rows_, block.end);
      halo.push_back(end - first);
      extended.push_back(all.part(r, c).size() + halo.back());
    }
    halo_ = blocked(std::move(halo));
    extended_ = blocked(std::move(extended));
  }

  const blocking& halo_rows() const { return halo_; }
  const blocking& extended_rows() const { return extended_; }
  /// Rows of the whole that rank r has in the halo, and in the extended chunk.
  std::vector<global_index> halo_of(int r) const {
    const interval mine = halo_.block(vertex_rows.rows, at(r));
    return {rows_.begin() + mine.begin, rows_.begin() + mine.end};
  }
  std::vector<global_index> extended_of(int r) const {
    std::vector<global_index> rows = all_->part_rows(r, chunk_);
    const std::vector<global_index> halo = halo_of(r);
    rows.insert(rows.end(), halo.begin(), halo.end());
    return rows;
  }
  /// The row, in the extended chunk, of a row of the whole that is in it.
  global_index extended_row(global_index row) const {
    const auto r = static_cast<int>(all_->rows().owner(vertex_rows.rows, row));
    const global_index first = extended_.block(vertex_rows.rows, at(r)).begin;
    const interval own = all_->part(r, chunk_);
    if (own.contains(row)) return first + row - own.begin;
    const auto place = std::ranges::lower_bound(rows_, row) - rows_.begin();
    return first + own.size() + place - halo_.block(vertex_rows.rows, at(r)).begin;
  }
  /// The vertex of each row of the extended chunk, in the order in which the dataset was given.
  std::vector<global_index> vertices() const {
    std::vector<global_index> of_rows;
    for (int r = 0; r < ranks(); ++r)
      for (const global_index v : extended_of(r))
        of_rows.push_back(all_->vertices()[static_cast<std::size_t>(v)]);
    return of_rows;
  }

 private:
  int ranks() const { return all_->rows().shape().size(); }
  coordinates at(int r) const { return all_->rows().shape().at(r); }
  blocking blocked(std::vector<global_index> sizes) const {
    sizes.resize(static_cast<std::size_t>(ranks()), 0);
    return blocking::given(std::move(sizes), all_->rows().shape(), nesting::rows);
  }

  const chunked_vertices* all_;
  std::size_t chunk_;
  std::vector<global_index> rows_;
  blocking halo_, extended_;
};

/// The halos of all chunks. Local. `all` must outlive them.
inline std::vector<chunk_halo> halos_of(const chunked_vertices& all) {
  std::vector<std::vector<global_index>> rows(all.count());
  for (const auto& e : all.data().edges)
    if (const std::size_t c = all.place(e.target).first; all.place(e.source).first != c)
      rows[c].push_back(e.source);
  std::vector<chunk_halo> halos;
  for (std::size_t c = 0; c < all.count(); ++c) {
    std::ranges::sort(rows[c]);
    rows[c].erase(std::unique(rows[c].begin(), rows[c].end()), rows[c].end());
    halos.emplace_back(all, c, std::move(rows[c]));
  }
  return halos;
}

/// Products for extended chunks: the chunk's rows of A times the extended chunk, and its halo's rows of A
/// times a table. Collective over the mesh: all members. What travels where tables have copies: each row of
/// the extended chunk that another rank's rows of the chunk refer to, once; else that of the policy's
/// products. Operands have numbers of S, as those of chunk_graph.
template <class T, class Device, class S = T>
class halo_graph {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using stored = dense<S, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  halo_graph(std::shared_ptr<chunk_graph<T, Device, S>> g, const sampling::graph<T>& a, const policy& p,
             spmm_options options = {})
      : graph_(std::move(g)), options_(options), halos_(halos_of(graph_->chunks())) {
    for (std::size_t c = 0; c < halos_.size(); ++c) {
      fringe_.push_back(graph_->slice(a, halos_[c].halo_of(rank()), halos_[c].halo_rows(), p));
      if (graph_->copies())
        find_parts(a, c);
      else
        near_.push_back(graph_->slice(
            a, graph_->chunks().part_rows(rank(), c), graph_->chunks().rows(c), halos_[c].extended_rows(),
            [&](global_index v) { return halos_[c].extended_row(v); }, p));
    }
  }

  const chunk_halo& halo(std::size_t c) const { return halos_[c]; }
  /// The rows of chunk c, and of its halo, in the extended chunk. Local.
  template <class Matrix>
  auto own(std::size_t c, Matrix& x) const {
    return part(graph_->chunks().rows(c), {0, own_rows(c)}, x);
  }
  template <class Matrix>
  auto fringe(std::size_t c, Matrix& x) const {
    return part(halos_[c].halo_rows(), {own_rows(c), x.local().rows}, x);
  }
  /// The chunk's rows of a dense x (extended rows x f) in the table, and y = A x for the extended chunk, in
  /// which the neighbours of the halo's vertices are those in the table.
  void multiply(std::size_t c, const operand& x, stored& table, matrix& y) {
    x.visit_dense([&](const auto& rows) {
      graph_->write(c, own(c, rows), table);
      if constexpr (std::is_same_v<decltype(rows), const stored&>) {
        multiply_stored(c, rows, table, y);
      } else {
        std::optional<stored>& rounded = plan_of(c, rows.shape().cols).rounded;
        if (!rounded) rounded.emplace(rows.mesh(), rows.row_blocking(), rows.col_blocking());
        copy(rows, *rounded);
        multiply_stored(c, *rounded, table, y);
      }
    });
  }
  traffic predicted(std::size_t c, global_index width) {
    plan& p = plan_of(c, width);
    return p.near.predicted() + p.fringe.predicted() + (p.copies ? p.copies->predicted() : traffic{});
  }

 private:
  using slice_matrix = sparse<T, dynamic_layout, Device>;
  struct plan {
    spmm_plan<T, Device, S> near, fringe;
    std::optional<spmm_plan<T, Device, S>> far;
    std::optional<gather_rows_plan<S, Device>> copies;
    std::optional<stored> received, rounded;
  };

  void multiply_stored(std::size_t c, const stored& x, const stored& table, matrix& y) {
    plan& p = plan_of(c, x.shape().cols);
    matrix own_y = own(c, y), fringe_y = fringe(c, y);
    if (!graph_->copies()) {
      p.near(x, own_y);
      return p.fringe(table, fringe_y);
    }
    matrix alone_y = alone(own_y), alone_fringe = alone(fringe_y);
    if (p.copies) p.copies->start(x);
    p.near(alone(x), alone_y);
    p.fringe(table, alone_fringe);
    if (!p.copies) return;
    p.copies->finish();
    p.copies->rows(0, x, *p.received);
    (*p.far)(1, *p.received, 1, alone_y);
  }

  int rank() const { return graph_->mesh_of_rows().rank(); }
  local_index own_rows(std::size_t c) const {
    return static_cast<local_index>(graph_->chunks().part(rank(), c).size());
  }
  template <class Matrix>
  auto part(const blocking& rows, interval local, Matrix& x) const {
    return part_of_rows(graph_->mesh_of_rows(), rows, local, x);
  }
  template <class Matrix>
  auto alone(Matrix& x) const {
    const auto& m = graph_->mesh_of_table();
    const global_index rows = x.local().rows;
    return part_of_rows(m, blocking::even(rows, m.shape(), nesting::rows), {0, rows}, x);
  }
  /// Of the chunk's rows of A, the columns that this rank has, and those that it receives.
  void find_parts(const sampling::graph<T>& a, std::size_t c) {
    const std::vector<global_index> rows = graph_->chunks().part_rows(rank(), c);
    const interval mine = halos_[c].extended_rows().block(vertex_rows.rows, graph_->mesh_of_rows().at());
    const auto row_of = [&](global_index v) { return halos_[c].extended_row(v); };
    std::vector<global_index>& ids = copied_.emplace_back();
    for (const auto& e : entries_of_rows(a, rows, 0, row_of))
      if (!mine.contains(e.col)) ids.push_back(e.col);
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const auto near = [&](global_index v) {
      return mine.contains(row_of(v)) ? static_cast<local_index>(row_of(v) - mine.begin) : local_index{-1};
    };
    const auto far = [&](global_index v) {
      const auto at = std::ranges::lower_bound(ids, row_of(v));
      return mine.contains(row_of(v)) ? local_index{-1} : static_cast<local_index>(at - ids.begin());
    };
    const auto& m = graph_->mesh_of_table();
    near_.push_back(block_matrix(m, block_of_rows(a, rows, mine.size(), near), false));
    far_.push_back(block_matrix(m, block_of_rows(a, rows, std::ssize(ids), far), false));
  }
  plan& plan_of(std::size_t c, global_index width) {
    const auto found = plans_.find({c, width});
    if (found != plans_.end()) return found->second;
    const auto columns = [&](const mesh<Device>& m) {
      return blocking::even(width, m.shape(), nesting::cols);
    };
    const auto& m = graph_->mesh_of_rows();
    const auto& of_table = graph_->mesh_of_table();
    plan p{{near_[c], vertex_rows, columns(of_table), options_},
           {fringe_[c], vertex_rows, columns(of_table), options_},
           {},
           {},
           {},
           {}};
    if (graph_->copies() && m.size() > 1) {
      p.far.emplace(far_[c], vertex_rows, columns(of_table), options_);
      p.copies.emplace(m, partition::block_layout{halos_[c].extended_rows(), columns(m), vertex_rows});
      p.copies->assign(copied_[c]);
      p.received.emplace(of_table, far_[c].col_blocking(), columns(of_table));  // (copied rows, f)
    }
    return plans_.emplace(std::pair(c, width), std::move(p)).first->second;
  }

  std::shared_ptr<chunk_graph<T, Device, S>> graph_;
  spmm_options options_;
  std::vector<chunk_halo> halos_;
  std::vector<slice_matrix> near_, far_, fringe_;
  std::vector<std::vector<global_index>> copied_;  ///< of each chunk, as rows of the extended one
  std::map<std::pair<std::size_t, global_index>, plan> plans_;
};

}  // namespace partita::nn
