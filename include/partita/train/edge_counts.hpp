// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The places of a graph's edges, from which policies are compared without distributing a matrix.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/train/edge_rows.hpp"
#include "partita/transfer/entry_checks.hpp"
#include "partita/transfer/tile_counts.hpp"

namespace partita::nn {

/// This rank's share of the distinct edges of a graph, whatever the mesh. Edges in ascending order, by source
/// or by target, are read where they are; of others each rank keeps an even block of rows of the adjacency
/// matrix, in 4 bytes an edge. It refers to the dataset, which must outlive it. Collective over `world`,
/// whose ranks have the same data: is_symmetric() and for_entries().
class edge_counts {
 public:
  /// Local.
  edge_counts(const communicator& world, const io::dataset& data, int threads = 1)
      : world_(world), data_(&data), threads_(threads), entries_(world, data) {}

  const io::dataset& data() const { return *data_; }
  const communicator& world() const { return world_; }
  /// Whether A = A^T. What travels: see partita::is_symmetric, once.
  bool is_symmetric() const {
    if (!symmetric_) symmetric_ = partita::is_symmetric(world_, entries_);
    return *symmetric_;
  }

  /// visit(row, col) for this rank's entries of A, or of A + I `with_loops`: each place on one rank, once.
  /// What travels: in the first call, an all-reduce of one element, and, unless the edges ascend, each edge,
  /// to one rank. Throws shape_error naming an edge outside the graph, and error naming a weight that is not
  /// finite.
  template <class Visit>
  void for_entries(bool with_loops, const Visit& visit) const {
    if (!is_ready_) sort_edges();
    const auto unless_loop = [&](global_index row, global_index col) {
      if (!with_loops || row != col) visit(row, col);
    };
    const blocking columns = blocking::even(data_->vertices, {world_.size(), 1, 1}, nesting::rows);
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      const auto& [begins, cols] = kept_[t];
      const global_index first_col = columns.block(axis::row, t).begin;
      for (std::size_t i = 0; i + 1 < begins.size(); ++i)
        for (std::size_t e = begins[i]; e < begins[i + 1]; ++e)
          unless_loop(first_row_ + static_cast<global_index>(i), first_col + cols[e]);
    }
    if (kept_.empty())
      for (const io::edge& e : share()) unless_loop(e.target, e.source);
    const interval vertices = comm::share_of(data_->vertices, world_.rank(), world_.size());
    for (global_index v = vertices.begin; with_loops && v < vertices.end; ++v) visit(v, v);
  }

 private:
  struct kept_tile {
    std::vector<std::size_t> begins;  ///< (rows + 1)
    std::vector<local_index> columns;
  };

  void sort_edges() const {
    transfer::require_entries({data_->vertices, data_->vertices}, entries_);
    global_index unsorted[] = {1};
    if (ascends(&io::edge::source, &io::edge::target) || ascends(&io::edge::target, &io::edge::source))
      unsorted[0] = 0;
    world_.all_reduce(unsorted, reduction::max);
    is_ready_ = true;
    if (unsorted[0] == 0) return;
    const auto ones = graph_entries<std::uint8_t>(world_, *data_).unweighted();
    const auto keep = [&](auto&& tile) {
      kept_.push_back({std::move(tile.begins), std::move(tile.columns)});
    };
    first_row_ = detail::for_edge_tiles(world_, data_->vertices, ones, threads_, keep).begin;
    entries_.forget();
  }
  std::span<const io::edge> share() const {
    const interval mine =
        comm::share_of(static_cast<global_index>(data_->edges.size()), world_.rank(), world_.size());
    return std::span<const io::edge>(data_->edges)
        .subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size()));
  }
  /// Whether each edge of the share is before the one behind it, by one end, then by the other.
  bool ascends(global_index io::edge::*by, global_index io::edge::*then) const {
    const io::edge* const end = data_->edges.end();
    for (const io::edge& e : share()) {
      const io::edge* const next = &e + 1;
      if (next != end && std::pair(e.*by, e.*then) >= std::pair(next->*by, next->*then)) return false;
    }
    return true;
  }

  communicator world_;
  const io::dataset* data_;
  int threads_;
  graph_entries<double> entries_;
  mutable std::optional<bool> symmetric_;
  mutable bool is_ready_ = false;
  mutable global_index first_row_ = 0;
  mutable std::vector<kept_tile> kept_;  ///< none where the edges ascend
};

}  // namespace partita::nn
