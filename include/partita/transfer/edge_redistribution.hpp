// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution of edge values from the policy's tiles to the owners of the edges' targets.

#include "partita/local/chunked.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/transfer/in_edges.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::transfer {

/// own(e, h) = sum over ranks of their contributions to value h of edge e, for the in-edges of owned vertices
/// in the order of in_edges::own_rows (entries x heads), from values on tiles (entries x the heads whose
/// columns the rank owns).
///
/// Ranks that share a row of A hold disjoint edges of it; when the columns of the dot products are
/// partitioned too, several ranks contribute to one value. On one rank whose tiles have the edges in that
/// order nothing moves. Collective over the mesh: constructor and call. What travels: each contribution once,
/// to the owner of the target; nothing for heads of which a rank owns no columns.
template <class T, class Device>
class edge_redistribution {
 public:
  /// `features`: the columns of the dot products, partitioned by `slices`, with the heads side by side.
  edge_redistribution(const sparse<T, dynamic_layout, Device>& a, const in_edges<T, Device>& rows,
                      const blocking& features, local_index heads, axis_set slices)
      : mesh_(a.mesh()), group_(a.layout().cols | slices), heads_(heads) {
    find_sources(a, rows, features, slices);
    if (group_size() == 1) return;
    list_runs(a);
    outgoing_ = buffer<T, Device>(mesh_.queue(), comm::total_of(send_counts_));
    incoming_ = buffer<T, Device>(mesh_.queue(), comm::total_of(recv_counts_));
  }

  /// own (in-edges x heads) from the values on this rank's tiles (entries x its heads): `on_tiles` where they
  /// are the same array (see in_place), and else `at_targets`, which is overwritten.
  std::span<T> operator()(std::span<T> on_tiles, std::span<T> at_targets) {
    if (in_place()) return on_tiles;
    const auto& q = mesh_.queue();
    const T* values = on_tiles.data();
    T* const own = at_targets.data();
    if (group_size() > 1) {
      const local_index heads = heads_at(me());
      for (const sent_run& r : sent_)
        local::chunked::copy(q, edges(values, r.from, r.count, heads),
                             edges(outgoing_.data(), r.to, r.count, heads));
      mesh_.along(group_).all_to_all(outgoing_.span(), send_counts_, incoming_.span(), recv_counts_);
      values = incoming_.data();
    }
    local::for_runs(own_entries_, mesh_.tile_entries(), [&](std::size_t first, local_index count) {
      local::chunked::fill(q, T(0), edges(own, first, count, heads_));
    });
    for (int s = 0; s < static_cast<int>(sources_.size()); ++s) {
      const source& from = sources_[static_cast<std::size_t>(s)];
      const std::span<const local_index> positions = from.edges->positions.span();
      for (const received_run& r : from.edges->runs)
        local::add_rows(q, edges(values, r.from, r.count, heads_at(s)).data,
                        positions.subspan(r.from, static_cast<std::size_t>(r.count)),
                        edges(own, r.base, r.window, heads_)
                            .block(0, static_cast<local_index>(from.heads.begin), r.window, heads_at(s)));
      values += recv_counts_[static_cast<std::size_t>(s)];
    }
    return at_targets;
  }

  /// Whether this rank's tiles have the values as its own in-edges need them.
  bool in_place() const { return sources_.empty(); }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const { return transfer::received_rows(recv_counts_, 1, me()); }
  /// The same without a plan.
  static traffic predicted(const sparse<T, dynamic_layout, Device>& a, const in_edges<T, Device>& rows,
                           const blocking& features, local_index heads, axis_set slices) {
    const mesh_shape shape = a.mesh().shape();
    const axis_set cut = a.layout().cols, group = cut | slices;
    std::vector<global_index> edges(static_cast<std::size_t>(shape.size(cut)), 0), counts;
    for (const local_index c : rows.own_columns()) ++edges[tile_of(a, c).first];
    for (int q = 0; q < shape.size(group); ++q) {
      const coordinates at = partition::group_member(shape, group, a.mesh().at(), q);
      counts.push_back(edges[static_cast<std::size_t>(partition::rank_in_group(shape, cut, at))] *
                       local::heads_of(features.block(slices, at), features.size() / heads).size());
    }
    return transfer::received_rows(counts, 1, partition::rank_in_group(shape, group, a.mesh().at()));
  }

 private:
  /// `count` entries of this rank's tiles, from entry `from`, packed at entry `to` of the send buffer.
  struct sent_run {
    std::size_t from, to;
    local_index count;
  };
  /// `count` entries of a message, from entry `from`, scattered into the `window` own entries starting at
  /// `base`.
  struct received_run {
    std::size_t from, base;
    local_index count, window;
  };
  /// The in-edges of owned vertices within one rank's tiles, tile by tile and by target within each tile.
  struct edge_list {
    std::vector<received_run> runs;
    buffer<local_index, Device> positions;  ///< of each edge, relative to the base of its run
  };
  /// A rank of the group: the heads whose columns it owns, and the edges it contributes to.
  struct source {
    interval heads;
    std::shared_ptr<const edge_list> edges;
  };

  int group_size() const { return mesh_.shape().size(group_); }
  int me() const { return partition::rank_in_group(mesh_.shape(), group_, mesh_.at()); }
  coordinates at(int q) const { return partition::group_member(mesh_.shape(), group_, mesh_.at(), q); }
  local_index heads_at(int q) const {
    return static_cast<local_index>(sources_[static_cast<std::size_t>(q)].heads.size());
  }
  /// Entries [first, first + count) of an array with `heads` values per entry.
  template <class U>
  static matrix_view<U> edges(U* values, std::size_t first, local_index count, local_index heads) {
    return {values + first * static_cast<std::size_t>(heads), count, heads, heads};
  }

  /// The rank, along the axes that partition the columns of A, and the tile that have a column of this row.
  static std::pair<std::size_t, std::size_t> tile_of(const sparse<T, dynamic_layout, Device>& a,
                                                     local_index column) {
    const mesh_shape shape = a.mesh().shape();
    const axis_set cut = partition::column_cut(a.layout());
    const coordinates tile =
        partition::group_member(shape, cut, {}, static_cast<int>(a.col_blocking().owner(cut, column)));
    return {static_cast<std::size_t>(partition::rank_in_group(shape, a.layout().cols, tile)),
            static_cast<std::size_t>(tile.row)};
  }
  /// Groups the in-edges of owned vertices by the tiles that hold them.
  void find_sources(const sparse<T, dynamic_layout, Device>& a, const in_edges<T, Device>& rows,
                    const blocking& features, axis_set slices) {
    const mesh_shape shape = mesh_.shape();
    const layout sparse = a.layout();
    const std::span<const local_index> columns = rows.own_columns();
    own_entries_ = columns.size();
    const auto ranks = static_cast<std::size_t>(shape.size(sparse.cols)), tiles = a.local()->count();
    std::vector<std::vector<std::size_t>> by_tile(ranks * tiles);
    for (std::size_t e = 0; e < own_entries_; ++e) {
      const auto [rank, tile] = tile_of(a, columns[e]);
      by_tile[rank * tiles + tile].push_back(e);
    }
    bool in_order = group_size() == 1;
    for (std::size_t next = 0; const auto& tile : by_tile)
      for (const std::size_t e : tile) in_order = in_order && e == next++;
    if (in_order) return;
    std::vector<std::shared_ptr<const edge_list>> lists;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      lists.push_back(make_list(std::span(by_tile).subspan(rank * tiles, tiles)));
    for (int q = 0; q < group_size(); ++q) {
      const interval heads =
          partita::local::heads_of(features.block(slices, at(q)), features.size() / heads_);
      sources_.push_back(
          {heads, lists[static_cast<std::size_t>(partition::rank_in_group(shape, sparse.cols, at(q)))]});
      recv_counts_.push_back(static_cast<global_index>(sources_.back().edges->positions.size()) *
                             heads.size());
    }
  }

  std::shared_ptr<const edge_list> make_list(std::span<const std::vector<std::size_t>> tiles) const {
    const std::size_t most = mesh_.tile_entries();
    auto list = std::make_shared<edge_list>();
    std::vector<local_index> positions;
    for (const std::vector<std::size_t>& tile : tiles)
      for (const std::size_t e : tile) {
        const std::size_t base = e / most * most;
        const bool longest = !list->runs.empty() && static_cast<std::size_t>(list->runs.back().count) == most;
        if (list->runs.empty() || list->runs.back().base != base || longest)
          list->runs.push_back(
              {positions.size(), base, 0, static_cast<local_index>(std::min(most, own_entries_ - base))});
        ++list->runs.back().count;
        positions.push_back(static_cast<local_index>(e - base));
      }
    transfer::upload(mesh_.queue(), positions, list->positions);
    return list;
  }

  /// Groups the entries of this rank's tiles by the owners of their targets, tile by tile.
  void list_runs(const sparse<T, dynamic_layout, Device>& a) {
    const auto& block = *a.local();
    const local::entry_lists entries = block.entries(mesh_.queue());
    const auto row = [&](global_index v) { return static_cast<std::size_t>(v - a.row_range().begin); };
    std::size_t all = 0;
    for (int q = 0; q < group_size(); ++q) {
      const std::size_t before = all;
      const interval targets = a.row_blocking().block(vertex_rows.rows, at(q));
      for (std::size_t t = 0; t < block.count(); ++t) {
        const std::size_t begin = entries.begin(t, row(targets.begin)),
                          end = entries.begin(t, row(targets.end));
        local::for_runs(end - begin, mesh_.tile_entries(), [&](std::size_t at, local_index count) {
          sent_.push_back({begin + at, all + at, count});
        });
        all += end - begin;
      }
      send_counts_.push_back(static_cast<global_index>(all - before) * heads_at(me()));
    }
  }

  mesh<Device> mesh_;
  axis_set group_;
  local_index heads_;
  std::size_t own_entries_ = 0;
  std::vector<source> sources_;
  std::vector<sent_run> sent_;
  std::vector<global_index> send_counts_, recv_counts_;
  buffer<T, Device> outgoing_, incoming_;
};

}  // namespace partita::transfer
