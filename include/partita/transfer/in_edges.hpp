// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The in-edges of a rank's own vertices, as whole rows, under any policy.

#include <algorithm>
#include <numeric>
#include <vector>

#include "partita/matrix/sparse.hpp"
#include "partita/transfer/halo.hpp"

namespace partita::transfer {

/// The rows of A's pattern that the policy assigns to this rank, with whole columns, in host memory: global
/// columns, ascending in each row. Rows and columns are the same vertices; on a mesh of one rank the rows may
/// be only the first of them, as in blocks of sampled neighbours.
///
/// Collective over the mesh: the constructor. What travels: when A's columns are partitioned, an all-gather
/// of the entries of the ranks that share these rows, once.
template <class T, class Device>
class in_edges {
 public:
  explicit in_edges(const sparse<T, dynamic_layout, Device>& a)
      : mesh_(square(a).mesh()),
        vertices_(a.row_blocking()),
        sources_(a.col_blocking()),
        range_(a.row_range()),
        global_cols_(base::to_local(a.col_blocking().size(), "the number of vertices")) {
    std::vector<global_index> counts;
    list_entries(a, counts);
    if (const communicator& others = mesh_.control(a.layout().cols); others.size() > 1)
      gather(others, counts);
    begins_.push_back(0);
    for (const global_index n : counts) begins_.push_back(begins_.back() + static_cast<std::size_t>(n));
  }

  const partita::mesh<Device>& mesh() const { return mesh_; }
  /// The targets and the sources of the edges.
  const blocking& vertices() const { return vertices_; }
  const blocking& sources() const { return sources_; }

  /// The rows that the policy assigns to this rank, and their pattern with global columns (rows x n).
  interval range() const { return range_; }
  local::csr_tiles<T, Device> all_rows() const { return pattern(range_, columns_, global_cols_); }

  /// This rank's own vertices, a subset of those rows, and the pattern of their in-edges (n/P x n).
  interval own() const { return vertices_.block(vertex_rows.rows, mesh_.at()); }
  interval own_sources() const { return sources_.block(vertex_rows.rows, mesh_.at()); }
  local::csr_tiles<T, Device> own_rows() const { return pattern(own(), own_columns(), global_cols_); }
  /// The sources of the in-edges of own vertices, target by target.
  std::span<const local_index> own_columns() const {
    const std::size_t first = begin_of(own().begin);
    return std::span(columns_).subspan(first, begin_of(own().end) - first);
  }
  /// Where those of each own vertex begin in own_columns(), and the end.
  std::vector<std::size_t> own_offsets() const { return offsets_of(own()); }
  /// The vertices owned by other ranks with an edge to an own vertex, ascending.
  std::vector<global_index> needed() const {
    std::vector<global_index> others;
    for (const local_index c : own_columns())
      if (!own_sources().contains(c)) others.push_back(c);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
  }
  /// The halo of the rows in needed().
  halo<T, Device> make_halo() const { return {mesh_, sources_, needed()}; }
  /// The in-edges of own vertices, with columns renumbered to rows of a table of `h`.
  local::csr_tiles<T, Device> own_rows(const halo<T, Device>& h) const {
    std::vector<local_index> positions;
    for (const local_index c : own_columns()) positions.push_back(h.row_of(c));
    return pattern(own(), positions, base::to_local(h.table_rows(), "the rows of a halo"));
  }
  /// The transpose of that: for each row of the table the own vertices that it has an edge to, counted from
  /// the first one, ascending.
  local::csr_tiles<T, Device> out_rows(const halo<T, Device>& h) const {
    const std::vector<std::size_t> begins = own_offsets();
    std::vector<std::size_t> offsets(static_cast<std::size_t>(h.table_rows()) + 1, 0);
    const auto row_of = [&](std::size_t e) { return static_cast<std::size_t>(h.row_of(own_columns()[e])); };
    for (std::size_t e = 0; e < begins.back(); ++e) ++offsets[row_of(e) + 1];
    std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
    std::vector<std::size_t> next = offsets;
    std::vector<local_index> targets(begins.back());
    for (std::size_t v = 0; v + 1 < begins.size(); ++v)
      for (std::size_t e = begins[v]; e < begins[v + 1]; ++e)
        targets[next[row_of(e)]++] = static_cast<local_index>(v);
    return local::make_tile<T>(mesh_.queue(), {0, h.table_rows()}, offsets, targets,
                               base::to_local(own().size(), "the own vertices of a rank"), {},
                               mesh_.tile_entries());
  }

 private:
  /// a, whose rows and columns are the same vertices, owned by the same ranks; or its rows the first ones.
  static const sparse<T, dynamic_layout, Device>& square(const sparse<T, dynamic_layout, Device>& a) {
    a.stored_for("in_edges");
    const bool first_rows = a.mesh().size() == 1 && a.shape().rows <= a.shape().cols;
    if (!first_rows && !(a.row_blocking() == a.col_blocking()))
      base::throw_error<shape_error>({"in_edges: the rows and columns of A of ", a.shape(),
                                      " are the same vertices; give both the same blocking"});
    return a;
  }
  std::size_t begin_of(global_index row) const {
    return begins_[static_cast<std::size_t>(row - range_.begin)];
  }
  std::vector<std::size_t> offsets_of(interval rows) const {
    std::vector<std::size_t> offsets;
    for (global_index v = rows.begin; v <= rows.end; ++v)
      offsets.push_back(begin_of(v) - begin_of(rows.begin));
    return offsets;
  }
  local::csr_tiles<T, Device> pattern(interval rows, std::span<const local_index> columns,
                                      local_index cols) const {
    return local::make_tile<T>(mesh_.queue(), rows, offsets_of(rows), columns, cols, {},
                               mesh_.tile_entries());
  }

  /// This rank's entries, row by row with ascending global columns, and their number per row.
  void list_entries(const sparse<T, dynamic_layout, Device>& a, std::vector<global_index>& counts) {
    const auto& block = *a.local();
    const local::entry_lists entries = block.entries(mesh_.queue());
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.rows); ++i) {
      const std::size_t before = columns_.size();
      for (std::size_t t = 0; t < block.count(); ++t) {
        const auto first = static_cast<local_index>(a.tile_columns(t).begin);
        for (std::size_t e = entries.begin(t, i); e < entries.end(t, i); ++e)
          columns_.push_back(first + entries.column(e));
      }
      counts.push_back(static_cast<global_index>(columns_.size() - before));
    }
  }
  /// Merges in the entries of all ranks that share the rows.
  void gather(const communicator& others, std::vector<global_index>& counts) {
    const auto ranks = static_cast<std::size_t>(others.size()), rows = counts.size();
    const std::vector<global_index> all_counts = others.all_gather(counts);
    std::vector<global_index> lengths(ranks, 0);
    for (std::size_t q = 0; q < ranks; ++q)
      for (std::size_t i = 0; i < rows; ++i) lengths[q] += all_counts[q * rows + i];
    const std::vector<local_index> all = others.all_gather(columns_, lengths);
    std::vector<std::size_t> next;
    for (int q = 0; q < others.size(); ++q)
      next.push_back(static_cast<std::size_t>(comm::offset_of(lengths, q)));
    columns_.clear();
    for (std::size_t i = 0; i < rows; ++i) {
      const auto before = static_cast<std::ptrdiff_t>(columns_.size());
      for (std::size_t q = 0; q < ranks; ++q)
        for (global_index n = all_counts[q * rows + i]; n > 0; --n) columns_.push_back(all[next[q]++]);
      std::sort(columns_.begin() + before, columns_.end());
      counts[i] = static_cast<global_index>(columns_.size()) - before;
    }
  }

  partita::mesh<Device> mesh_;
  blocking vertices_, sources_;
  interval range_;
  local_index global_cols_;
  std::vector<std::size_t> begins_;  ///< row offsets, including the end
  std::vector<local_index> columns_;
};

}  // namespace partita::transfer
