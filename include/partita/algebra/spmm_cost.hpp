// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Closed-form communication volume of Y = A X for each set of options, and the choice among them.

#include <algorithm>
#include <array>
#include <numeric>

#include "partita/algebra/row_exchange.hpp"
#include "partita/algebra/sum_along.hpp"
#include "partita/local/tuned_spmm.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita {

/// Which operand is stationary along col: `c` moves A, `a` moves X and Y; `automatic` minimises what the
/// busiest rank receives.
enum class stationary : std::uint8_t { automatic, c, a };

/// How a product Y = A X communicates; `automatic` options are resolved when it is planned.
struct spmm_options {
  partita::stationary stationary = partita::stationary::automatic;
  row_exchange rows = row_exchange::automatic;
  /// Chunks of A's rows: one is multiplied while the needed rows of the next ones are exchanged. More than 1
  /// imply that only needed rows are exchanged. 0: 1 without far memory, and with it as many as its window
  /// suggests. 1 is in effect if whole blocks are exchanged, and for values that are not A's own.
  int chunks = 0;
  /// Slices of the needed rows, by the ranks that send them and by turns: one is multiplied while the next
  /// ones are exchanged. More than 1 imply that only needed rows are; Y may then have other bits. 0: as many
  /// as pay for A's rows and entries; 1 over far memory. 1 is in effect with chunks, if blocks of A or whole
  /// blocks of X move, and for values that are not A's own. Even then sums along col and depth, unless far,
  /// are sent in as many parts; 0: at most 8, of 2^17 bytes or more, on devices 4, of 2^23.
  int slices = 0;
  /// Whether A's rows are multiplied in another order, on this rank and if its blocks stay in place; Y has
  /// the same bits. `automatic` is decided in the second product with each block.
  local::row_order row_order = local::row_order::automatic;
  /// How rows of X, and sums for rows of Y, are encoded along row. All encodings but `exact` send only
  /// needed rows, and an element received is a byte. A rank's own rows are not rounded.
  local::row_encoding encoding = local::row_encoding::exact;
  /// This many consecutive ranks of the mesh share a node. More than 1 imply that only needed rows are
  /// exchanged: each is sent to a node once and handed on inside it, and sums for it are added inside a node
  /// before they are sent. There is one chunk, and rows are encoded only between nodes. 1 is in effect if no
  /// ranks along row share a node, if all do, and for values that are not A's own.
  int ranks_of_node = 1;
};

namespace algebra::detail {

/// The partition of Y = A X or, if sums go, of Y = A^T X: the blocks of A, X and Y, without their
/// entries.
template <class Device>
struct spmm_blocks {
  mesh<Device> m;
  blocking rows, cols, features;  ///< rows and cols of A
  layout sparse, dense;
  row_flow flow = row_flow::rows_come;

  bool row_cut() const { return sparse.rows.contains(axis::row); }
  /// Whether ranks along col have parts of A's columns and of X's, so that either A or X moves there.
  bool col_cut() const { return sparse.cols.contains(axis::col) && !keeps_rows_whole() && m.shape().col > 1; }
  /// Whether X has whole rows that col cuts as it cuts A's columns: then A stays, and sums are over rows, as
  /// along depth.
  bool keeps_rows_whole() const { return dense.rows.contains(axis::col); }
  int row_ranks() const { return row_cut() ? m.shape().row : 1; }
  std::size_t own_tile() const { return row_cut() ? static_cast<std::size_t>(m.at().row) : 0; }
  bool stays(spmm_options o) const { return col_cut() && o.stationary == stationary::a; }

  /// B(r, d, k) at this rank's depth d.
  interval sub_block(int r, int k) const {
    coordinates at = m.at();
    at.row = r;
    at.col = k;
    return cols.block(partition::column_cut(sparse), at);
  }
  bool sums_go() const { return flow == row_flow::sums_go; }
  /// The axes along which ranks add up their parts of Y.
  axis_set summed(spmm_options o) const {
    axis_set along = sums_go() ? sparse.rows & axis::row : sparse.cols & (dense.rows | axis::depth);
    if (!sums_go() && stays(o)) along = along | axis::col;
    for (const axis a : partition::all_axes)
      if (m.shape().size(a) == 1) along = along - a;
    return along;
  }
  /// The columns of X while it is multiplied: all of them if A is stationary, after an all-to-all.
  axis_set multiplied_columns(spmm_options o) const {
    return stays(o) ? dense.cols - axis_set(axis::col) : dense.cols;
  }
  interval columns(spmm_options o) const { return features.block(multiplied_columns(o), m.at()); }
  /// The layout whose sub-blocks are exchanged along row: X's if rows come, Y's if sums go.
  layout exchanged(spmm_options o) const {
    if (stays(o)) return {partition::column_cut(sparse), multiplied_columns(o)};
    return sums_go() ? layout{partition::column_cut(sparse) - dense.cols, dense.cols} : dense;
  }
  /// The layout of X while it is multiplied.
  layout multiplied(spmm_options o) const {
    return sums_go() ? layout{sparse.rows, multiplied_columns(o)} : exchanged(o);
  }
  const blocking& rows_of_x() const { return sums_go() ? rows : cols; }
};

/// Throws shape_error unless X and Y have the blockings planned for A of `rows` x `cols` and X with columns
/// `features`.
inline void require_operands(const blocking& rows, const blocking& cols, const blocking& features,
                             const blocking& x_rows, const blocking& x_cols, const blocking& y_rows,
                             const blocking& y_cols) {
  if (x_rows == cols && y_rows == rows && x_cols == features && y_cols == features) return;
  base::throw_error<shape_error>({"spmm planned for A of ", matrix_shape{rows.size(), cols.size()},
                                  " and X of ", matrix_shape{cols.size(), features.size()},
                                  " was given X of ", matrix_shape{x_rows.size(), x_cols.size()},
                                  " and Y of ", matrix_shape{y_rows.size(), y_cols.size()},
                                  "; shapes and blockings must match the plan"});
}

/// The blocks of A that a rank multiplies, in order.
struct multiplied_blocks {
  std::vector<row_group> groups;
  std::vector<local::tile_shape> shapes;
};

/// The lists of needed rows of all blocks of this mesh row that this rank multiplies; the list of its own
/// block is `mine`. Collective along col if there are several.
template <class Device>
std::vector<local::needed_rows> share_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
                                            const local::needed_rows& mine) {
  if (groups.size() == 1) return {mine};
  std::vector<local::needed_rows> lists(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    local::needed_rows& list = lists[g];
    if (static_cast<int>(g) == m.at().col) list = mine;
    list.of_tile.resize(groups[g].needed.size());
    for (std::size_t r = 0; r < list.of_tile.size(); ++r) {
      list.of_tile[r].resize(static_cast<std::size_t>(groups[g].needed[r]));
      m.control(axis::col).broadcast(std::span<local_index>(list.of_tile[r]), static_cast<int>(g));
    }
  }
  return lists;
}

/// Chooses the options that `asked` leaves automatic, except chunks and slices: those that minimise what the
/// busiest rank receives, received_under(options). Collective over the mesh. Throws error for covers, whose
/// products have their own parts of A, for an encoding of whole blocks, and for nodes with whole blocks,
/// chunks or slices.
template <class Device, class Received>
spmm_options least_received(const mesh<Device>& m, spmm_options asked, Received received_under) {
  if (asked.rows == row_exchange::cover)
    base::throw_error<error>(
        {"row_exchange::cover is for products with the values that a matrix has, on a mesh that is not "
         "reproducible: not for values of edges, messages, and attention"});
  const bool encodes = asked.encoding != local::row_encoding::exact, by_nodes = asked.ranks_of_node > 1;
  if (encodes && asked.rows == row_exchange::full)
    base::throw_error<error>({"rows in ", local::name_of(asked.encoding),
                              " are needed rows: whole blocks, row_exchange::full, travel as they are"});
  if (by_nodes && asked.rows == row_exchange::full)
    base::throw_error<error>({"rows that are handed on inside nodes of ", asked.ranks_of_node,
                              " ranks are needed rows: whole blocks, row_exchange::full, are broadcast"});
  if (by_nodes && (asked.chunks > 1 || asked.slices > 1))
    base::throw_error<error>({"needed rows are handed on inside nodes of ", asked.ranks_of_node,
                              " ranks at once, not in ", std::max(asked.chunks, asked.slices), " parts",
                              ": sums of a node are complete when its last rank has multiplied"});
  if ((asked.chunks > 1 || asked.slices > 1 || encodes || by_nodes) && asked.rows == row_exchange::automatic)
    asked.rows = row_exchange::sparsity_aware;
  std::array<spmm_options, 4> candidates;
  std::vector<global_index> elements;
  for (const stationary kept : {stationary::c, stationary::a})
    for (row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware})
      if ((asked.stationary == stationary::automatic || asked.stationary == kept) &&
          (asked.rows == row_exchange::automatic || asked.rows == rows)) {
        candidates[elements.size()] = asked;
        candidates[elements.size()].stationary = kept;
        candidates[elements.size()].rows = rows;
        elements.push_back(received_under(candidates[elements.size()]).words);
      }
  m.world().all_reduce(elements, reduction::max);
  const auto least = std::min_element(elements.begin(), elements.end()) - elements.begin();
  return candidates[static_cast<std::size_t>(least)];
}

/// The blocks received along the col axis, one per rank, or only this rank's own if A is not partitioned by
/// col: the rows that each needs from every rank, and the shapes of its tiles.
///
/// Collective over the mesh: the constructor. What travels: block shapes along col and, if sums go, numbers
/// of needed rows along row, once.
template <class T, class Device>
class spmm_cost {
 public:
  /// `merges`: whether remote tiles of A are merged when only needed rows are exchanged.
  spmm_cost(const spmm_blocks<Device>& blocks, local::tile_analysis<T, Device>& a, bool merges)
      : blocks_(blocks), merges_(merges) {
    const auto& m = blocks_.m;
    const std::size_t size = blocks_.col_cut() ? static_cast<std::size_t>(m.shape().col) : 1;
    const std::vector<global_index> mine = a.needed().counts();
    const auto all = gather(mine, std::vector(size, static_cast<global_index>(mine.size())));
    for (std::size_t g = 0; g < size; ++g) {
      row_group group;
      for (int r = 0; r < blocks_.row_ranks(); ++r)
        group.rows.push_back(blocks_.sub_block(r, size > 1 ? static_cast<int>(g) : m.at().col).size());
      const auto of_group = std::span(all).subspan(g * mine.size(), mine.size());
      group.needed.assign(of_group.begin(), of_group.end());
      groups_.push_back(std::move(group));
    }
    shapes_ = shapes_like(a.tiles(), false);
    if (merges_) merged_shapes_ = shapes_like(a.merged_shape(), true);
    for (const row_group& group : groups_) {
      coming_.push_back(blocks_.sums_go() ? std::vector<global_index>(group.needed.size(), 0) : group.needed);
      const std::vector<global_index> ones(group.needed.size(), 1);
      if (blocks_.sums_go() && blocks_.row_ranks() > 1)
        m.control(axis::row).all_to_all(group.needed, ones, coming_.back(), ones);
    }
  }

  /// The largest number of elements of needed rows that this rank receives for one group.
  global_index most_needed(spmm_options o) const {
    global_index most = 0;
    for (const row_group& g : groups_)
      most = std::max(most, std::accumulate(g.needed.begin(), g.needed.end(), global_index{0}));
    return most * blocks_.columns(o).size();
  }
  bool merges(spmm_options o) const { return merges_ && o.rows == row_exchange::sparsity_aware; }
  const std::vector<local::tile_shape>& shapes(spmm_options o) const {
    return merges(o) ? merged_shapes_ : shapes_;
  }

  /// The blocks that this rank multiplies under `o`.
  multiplied_blocks multiplied(spmm_options o) const {
    const global_index first = blocks_.cols.block(blocks_.exchanged(o).rows, blocks_.m.at()).begin;
    multiplied_blocks all{groups_, shapes(o)};
    for (std::size_t g = 0; g < groups_.size(); ++g)
      all.groups[g].first_row =
          static_cast<local_index>(blocks_.sub_block(blocks_.m.at().row, col_of(g)).begin - first);
    if (!blocks_.stays(o)) return all;
    const auto own = static_cast<std::size_t>(blocks_.m.at().col);
    return {{all.groups[own]}, {all.shapes[own]}};
  }

  /// What this rank would receive in one call under `o`, which has no `automatic` option, with needed rows
  /// sent at once.
  traffic received_under(spmm_options o) const {
    return received_of_a(o) + received_along_row(o) + received_in_x_layout(o) + received_in_sums(o);
  }
  /// The part of it due to rows of X, or sums, that are exchanged along row.
  traffic received_along_row(spmm_options o) const {
    const auto& b = blocks_;
    traffic v;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (b.stays(o) && col_of(g) != b.m.at().col) continue;
      std::vector<global_index> rows = o.rows == row_exchange::sparsity_aware ? coming_[g] : groups_[g].rows;
      if (o.rows == row_exchange::full && b.sums_go()) rows.assign(rows.size(), rows[b.own_tile()]);
      const auto how = o.rows == row_exchange::full ? local::row_encoding::exact : o.encoding;
      v += transfer::received_rows(rows, local::sent_of_row(how, b.columns(o).size()),
                                   static_cast<int>(b.own_tile()));
    }
    return v;
  }
  /// The part of it due to moving X to the layout in which it is multiplied.
  traffic received_in_x_layout(spmm_options o) const {
    const auto& b = blocks_;
    return redistribution<T, Device>::predicted(b.m, b.rows_of_x(), b.features, b.dense, b.multiplied(o));
  }
  /// The part of it due to blocks of A.
  traffic received_of_a(spmm_options o) const {
    traffic v;
    for (std::size_t g = 0; g < groups_.size() && !blocks_.stays(o); ++g) {
      const local::tile_shape& block = shapes(o)[g];
      if (col_of(g) != blocks_.m.at().col)
        v += traffic{static_cast<global_index>(block.structure_size()), 1} +
             traffic{static_cast<global_index>(block.values_size()), block.values_size() > 0 ? 1 : 0};
    }
    return v;
  }
  /// The part of it due to sums of partial products, except those along row.
  traffic received_in_sums(spmm_options o) const {
    const auto& b = blocks_;
    if (b.sums_go())
      return redistribution<T, Device>::predicted(b.m, b.cols, b.features, b.exchanged(o), b.dense);
    return partial_sums<T, Device>::predicted(b.m, b.rows, b.features, b.sparse, b.dense, b.stays(o));
  }

  /// Of the options that `asked` leaves automatic, those under which the busiest rank receives least.
  /// Collective over the mesh. What travels: one all-reduce of at most four integers.
  spmm_options choose(spmm_options asked) const {
    return least_received(blocks_.m, asked, [&](spmm_options o) { return received_under(o); });
  }

 private:
  /// The rank along col that owns a group's block.
  int col_of(std::size_t g) const { return groups_.size() > 1 ? static_cast<int>(g) : blocks_.m.at().col; }
  /// The tile shapes of the blocks of all ranks along col; `mine` is this rank's.
  std::vector<local::tile_shape> shapes_like(const local::tile_shape& mine, bool merged) const {
    const std::size_t groups = groups_.size();
    std::vector<global_index> restarts;
    for (const local::offset_restart& r : mine.restarts)
      for (const global_index n :
           {static_cast<global_index>(r.tile), global_index{r.row}, static_cast<global_index>(r.base)})
        restarts.push_back(n);
    const std::size_t parts = mine.entries_of_parts.size();
    const std::vector<global_index> sizes =
        gather({static_cast<global_index>(mine.nonzeros), static_cast<global_index>(restarts.size()),
                static_cast<global_index>(parts)},
               std::vector<global_index>(groups, 3));
    std::vector<global_index> recounts, part_counts;
    for (std::size_t g = 0; g < groups; ++g) {
      recounts.push_back(sizes[3 * g + 1]);
      part_counts.push_back(sizes[3 * g + 2]);
    }
    const auto all_recounts = gather(restarts, recounts);
    const auto all_parts = gather({mine.entries_of_parts.begin(), mine.entries_of_parts.end()}, part_counts);
    std::vector<local::tile_shape> shapes;
    auto next = all_recounts.begin();
    auto part = all_parts.begin();
    for (std::size_t g = 0; g < groups; ++g) {
      local::tile_shape shape{
          mine.rows, widths_of(groups_[g], merged), static_cast<std::size_t>(sizes[3 * g]), {}, {},
          mine.form};
      shape.entries_of_parts.assign(part, part + part_counts[g]);
      part += part_counts[g];
      for (const auto end = next + recounts[g]; next != end; next += 3)
        shape.restarts.push_back({static_cast<std::size_t>(next[0]), static_cast<local_index>(next[1]),
                                  static_cast<std::size_t>(next[2])});
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }
  /// The tile widths of a block, unmerged or `merged`.
  std::vector<local_index> widths_of(const row_group& group, bool merged) const {
    if (merged)
      return {static_cast<local_index>(group.rows[blocks_.own_tile()]),
              static_cast<local_index>(comm::offset_of(group.needed, blocks_.row_ranks()))};
    return {group.rows.begin(), group.rows.end()};
  }
  /// All-gather along the col axis of lists with these lengths, concatenated.
  std::vector<global_index> gather(const std::vector<global_index>& mine,
                                   const std::vector<global_index>& lengths) const {
    if (lengths.size() == 1) return mine;
    std::vector<global_index> all(static_cast<std::size_t>(comm::offset_of(lengths, blocks_.m.shape().col)));
    if (!all.empty()) blocks_.m.control(axis::col).all_gather(mine, lengths, all);
    return all;
  }

  spmm_blocks<Device> blocks_;
  bool merges_;
  std::vector<row_group> groups_;
  std::vector<std::vector<global_index>> coming_;  ///< needed rows, or sums for them, received here
  std::vector<local::tile_shape> shapes_, merged_shapes_;
};

}  // namespace algebra::detail

}  // namespace partita
