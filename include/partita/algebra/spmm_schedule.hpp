#pragma once
/// The schedule behind spmm: stages of exchange along row, A or X moved along col, sums over depth.
///
/// Let B(r, d, c) be the sub-block (depth d, col c) of row block r of X; A's columns at (d, c) are the union
/// of B(r, d, c) over r. A rank at (r, c, d) computes, with f/pc columns on the left and f columns on the
/// right,
///
///   sparse moves (C stationary)                       sparse stays (A stationary)
///   for each col k: A(r; d, k) comes along col        X goes to rows (.., col), full width: all-to-all along
///   col
///     for each row r': B(r', d, k) comes along row      for each row r': B(r', d, c) comes along row
///       Y += A(r, r'; d, k) B(r', d, k)                   Y += A(r, r'; d, c) B(r', d, c)
///                                                     Y is reduce-scattered along col over its columns
///   Y is reduce-scattered (X cut by depth) or all-reduced (X copied along depth) along depth
///
/// When A is not cut by col there is one k and nothing moves along col. What comes along row is the whole
/// sub-block, broadcast stage by stage with the next one in flight while the present one multiplies, or only
/// the rows that A's nonzero columns name, packed in one all-to-all that is in flight while the rank's own
/// tile multiplies.
///
/// Sources: 1D, 1.5D, 2D and 3D: Tripathy, Yelick, Buluc (SC20), section IV; the needed rows only:
/// Mukhopadhyay et al. (ICPP24). Here sub-blocks, not square blocks, so any mesh will do.

#include <limits>
#include <numeric>
#include <optional>

#include "partita/algebra/block_stream.hpp"
#include "partita/algebra/row_exchange.hpp"
#include "partita/algebra/sum_along.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita {

/// What moves along col; `automatic` takes what makes the busiest rank receive less.
enum class stationary : std::uint8_t { automatic, sparse_moves, sparse_stays };

struct spmm_options {
  stationary keep = stationary::automatic;
  exchange rows = exchange::automatic;
};

namespace detail {

/// What a product multiplies with: A's own values, or values that an array has for the entries of its tiles.
enum class entry_values : std::uint8_t { own, given };

/// Everything about a product but the types of its matrices.
template <class T, class Place>
class spmm_schedule {
 public:
  spmm_schedule(const mesh<Place>& m, std::shared_ptr<const tiles<T, Place>> a, const blocking& rows,
                const blocking& cols, const blocking& features, layout sparse_cut, layout dense_cut,
                spmm_options options, entry_values values = entry_values::own)
      : mesh_(m),
        a_(std::move(a)),
        rows_(rows),
        cols_(cols),
        features_(features),
        sparse_(sparse_cut),
        dense_(dense_cut),
        may_merge_(values == entry_values::own && row_ranks() > 1 && options.rows != exchange::whole) {
    const needed_rows& needed = a_->needed(m.queue(), own_tile());
    describe_blocks(needed);
    choose(options);
    build(needed);
  }

  void require(const blocking& x_rows, const blocking& x_cols, const blocking& y_rows,
               const blocking& y_cols) const {
    if (x_rows == cols_ && y_rows == rows_ && x_cols == features_ && y_cols == features_) return;
    throw shape_error("spmm planned for A of " + to_string(extent{rows_.size(), cols_.size()}) +
                      " and X of " + to_string(extent{cols_.size(), features_.size()}) + " was given X of " +
                      to_string(extent{x_rows.size(), x_cols.size()}) + " and Y of " +
                      to_string(extent{y_rows.size(), y_cols.size()}) + ", or blocks cut elsewhere");
  }

  void operator()(matrix_view<const T> x, matrix_view<T> y) {
    run(x, y,
        [&](std::size_t, const tile_part<T>& part, matrix_view<const T> rows, T beta, matrix_view<T> out) {
          multiply(part, rows, beta, out);
        });
  }
  /// The same with multiply_part(t, part of tile t of A, rows of X, beta, rows of the result), which is to be
  /// result = part rows + beta result.
  template <class MultiplyPart>
  void run(matrix_view<const T> x, matrix_view<T> y, MultiplyPart multiply_part) {
    const matrix_view<T> out = sums_.empty() ? y : sums_.input();
    local_index begun = 0;  // these rows of the result have something
    visit(x, [&](std::size_t t, const tile_part<T>& part, matrix_view<const T> rows) {
      multiply_part(t, part, rows, part.first_row < begun ? T(1) : T(0), part.rows_of(out));
      begun = std::max(begun, part.first_row + part.entries.rows);
    });
    sums_(y);
  }

  /// visitor(t, part of tile t of A, the rows of X that its columns count), for all parts of every tile that
  /// this rank multiplies, its own first. Where only needed rows travel and A has its own values, there are
  /// two tiles: this rank's, and one of all others, so that Y is passed over twice on any number of ranks.
  template <class Visitor>
  void visit(matrix_view<const T> x, Visitor visitor) {
    if (widen_) {
      (*widen_)(x, view(wide_, wide_rows_, width_));
      x = view(wide_, wide_rows_, width_);
    }
    start_rows(0, 0, x);
    blocks_->start(0);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      blocks_->arrive(k);
      if (k + 1 < groups_.size()) blocks_->start(k + 1);
      const auto own = static_cast<local_index>(groups_[k].rows[own_tile()]);
      const auto visit_tile = [&](std::size_t t, matrix_view<const T> rows) {
        blocks_->for_parts(k, t, [&](const tile_part<T>& part) { visitor(t, part, rows); });
      };
      visit_tile(merges() ? 0 : own_tile(), x.block(groups_[k].first_row, 0, own, width_));
      if (merges()) {
        const matrix_view<const T> rows = needed_->arrive(k);
        if (k + 1 < groups_.size()) start_rows(k + 1, 0, x);
        visit_tile(1, rows);
        continue;
      }
      for (int r = 0; r < row_ranks() && row_ranks() > 1; ++r) {
        const matrix_view<const T> rows = whole_ ? whole_->arrive(k, r) : needed_->arrive(k, r);
        if (r + 1 < row_ranks())
          start_rows(k, r + 1, x);
        else if (k + 1 < groups_.size())
          start_rows(k + 1, 0, x);
        if (r != static_cast<int>(own_tile())) visit_tile(static_cast<std::size_t>(r), rows);
      }
    }
  }

  /// Which heads the columns of the rows that are visited belong to.
  head_slice slice(local_index heads, local_index head_width) const {
    const axis_set by = stays() ? wide_cut().cols : dense_.cols;
    return {heads, head_width, static_cast<local_index>(features_.block(by, mesh_.at()).begin)};
  }
  /// What the visit alone receives: the traffic of a product less that of its sums.
  volume predicted_visit() const {
    const volume sums = partial_sums<T, Place>::predicted(mesh_, rows_, features_, sparse_, dense_, stays());
    return {predicted_.elements - sums.elements, predicted_.messages - sums.messages};
  }

  /// How many nonzeros this rank multiplies in one run, times the columns of X that it multiplies them with.
  global_index multiplications() const {
    std::size_t nonzeros = 0;
    for (const tile_shape& s : shapes_) nonzeros += s.nonzeros;
    return static_cast<global_index>(nonzeros) * width_;
  }
  volume predicted() const { return predicted_; }
  const partita::queue<Place>& queue() const { return mesh_.queue(); }
  spmm_options options() const { return options_; }

 private:
  bool row_cut() const { return sparse_.rows.contains(axis::row); }
  bool col_cut() const { return sparse_.cols.contains(axis::col) && mesh_.shape().col > 1; }
  bool moves() const { return col_cut() && options_.keep == stationary::sparse_moves; }
  bool stays() const { return col_cut() && options_.keep == stationary::sparse_stays; }
  /// Whether remote tiles are one.
  bool merges() const { return may_merge_ && options_.rows == exchange::needed; }
  int row_ranks() const { return row_cut() ? mesh_.shape().row : 1; }
  std::size_t own_tile() const { return row_cut() ? static_cast<std::size_t>(mesh_.at().row) : 0; }

  static matrix_view<T> view(buffer<T, Place>& b, local_index rows, local_index cols) {
    return {b.data(), rows, cols, cols};
  }

  /// B(r, d, k) of this rank's depth.
  interval sub_block(int r, int k) const {
    coordinates at = mesh_.at();
    at.row = r;
    at.col = k;
    return cols_.block(column_cut(sparse_), at);
  }
  /// The cut of X after the all-to-all of a product in which A stays: exactly the sub-blocks, full width.
  layout wide_cut() const { return {column_cut(sparse_), dense_.cols - axis_set(axis::col)}; }

  /// Learns, for every rank of the col axis, what its block looks like and how many rows it needs.
  void describe_blocks(const needed_rows& needed) {
    const std::vector<global_index> mine = needed.counts();
    const std::size_t groups = col_cut() ? static_cast<std::size_t>(mesh_.shape().col) : 1;
    const auto all = gather(mine, std::vector(groups, static_cast<global_index>(mine.size())));
    for (std::size_t g = 0; g < groups; ++g) {
      row_group group;
      for (int r = 0; r < row_ranks(); ++r)
        group.rows.push_back(sub_block(r, groups > 1 ? static_cast<int>(g) : mesh_.at().col).size());
      const auto of_group = std::span(all).subspan(g * mine.size(), mine.size());
      group.needed.assign(of_group.begin(), of_group.end());
      groups_.push_back(std::move(group));
    }
    shapes_ = shapes_like(*a_, groups, [&](std::size_t g) {
      std::vector<local_index> widths;
      for (const global_index rows : groups_[g].rows) widths.push_back(static_cast<local_index>(rows));
      return widths;
    });
    if (!may_merge_) return;
    const tile_shape& merged = a_->merged_shape(mesh_.queue(), own_tile(), mesh_.tile_entries());
    merged_shapes_ = shapes_like(merged, groups, [&](std::size_t g) {
      return std::vector{static_cast<local_index>(groups_[g].rows[own_tile()]),
                         static_cast<local_index>(offset_of(groups_[g].needed, row_ranks()))};
    });
  }
  /// The shapes of the blocks of the ranks of the col axis, of which this rank has `mine`.
  template <class Widths>
  std::vector<tile_shape> shapes_like(const tile_shape& mine, std::size_t groups, Widths widths) const {
    std::vector<global_index> recounts;
    for (const recount& r : mine.recounts)
      recounts.insert(recounts.end(),
                      {static_cast<global_index>(r.tile), r.row, static_cast<global_index>(r.base)});
    const std::vector<global_index> sizes =
        gather({static_cast<global_index>(mine.nonzeros), static_cast<global_index>(recounts.size())},
               std::vector<global_index>(groups, 2));
    std::vector<global_index> lengths;
    for (std::size_t g = 0; g < groups; ++g) lengths.push_back(sizes[2 * g + 1]);
    const auto all_recounts = gather(recounts, lengths);
    std::vector<tile_shape> shapes;
    std::size_t next = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      tile_shape shape{mine.rows, widths(g), static_cast<std::size_t>(sizes[2 * g]), {}, {}};
      if (groups == 1) shape.entries_of_parts = mine.entries_of_parts;
      for (const std::size_t end = next + static_cast<std::size_t>(lengths[g]); next < end; next += 3)
        shape.recounts.push_back({static_cast<std::size_t>(all_recounts[next]),
                                  static_cast<local_index>(all_recounts[next + 1]),
                                  static_cast<std::size_t>(all_recounts[next + 2])});
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }
  /// The lists of the ranks of the col axis, which have these lengths, one after another.
  std::vector<global_index> gather(const std::vector<global_index>& mine,
                                   const std::vector<global_index>& lengths) const {
    if (lengths.size() == 1) return mine;
    std::vector<global_index> all(static_cast<std::size_t>(offset_of(lengths, mesh_.shape().col)));
    if (!all.empty()) mesh_.control(axis::col).all_gather(mine, lengths, all);
    return all;
  }

  /// What this rank would receive under `o`, in closed form.
  volume received_under(spmm_options o) const {
    const bool wide = col_cut() && o.keep == stationary::sparse_stays;
    const axis_set by = wide ? wide_cut().cols : dense_.cols;
    const global_index width = features_.block(by, mesh_.at()).size();
    volume v;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (wide && static_cast<int>(g) != mesh_.at().col) continue;
      const auto& rows = o.rows == exchange::needed ? groups_[g].needed : groups_[g].rows;
      for (std::size_t r = 0; r < rows.size(); ++r)
        if (r != own_tile() && rows[r] * width > 0) v += {rows[r] * width, 1};
      const tile_shape& block = may_merge_ && o.rows == exchange::needed ? merged_shapes_[g] : shapes_[g];
      if (!wide && groups_.size() > 1 && static_cast<int>(g) != mesh_.at().col)
        v += volume{static_cast<global_index>(block.structure_size()), 1} +
             volume{static_cast<global_index>(block.nonzeros), block.nonzeros > 0 ? 1 : 0};
    }
    if (wide) v += redistribution<T, Place>::predicted(mesh_, cols_, features_, dense_, wide_cut());
    return v + partial_sums<T, Place>::predicted(mesh_, rows_, features_, sparse_, dense_, wide);
  }

  void choose(spmm_options asked) {
    std::vector<spmm_options> candidates;
    for (stationary keep : {stationary::sparse_moves, stationary::sparse_stays})
      for (exchange rows : {exchange::whole, exchange::needed})
        if ((asked.keep == stationary::automatic || asked.keep == keep) &&
            (asked.rows == exchange::automatic || asked.rows == rows))
          candidates.push_back({keep, rows});
    std::vector<global_index> elements;
    for (const spmm_options& o : candidates) elements.push_back(received_under(o).elements);
    mesh_.world().all_reduce(elements, reduction::max);
    options_ = candidates[static_cast<std::size_t>(std::min_element(elements.begin(), elements.end()) -
                                                   elements.begin())];
    predicted_ = received_under(options_);
  }

  void build(const needed_rows& needed) {
    const axis_set by = stays() ? wide_cut().cols : dense_.cols;
    width_ = narrow(features_.block(by, mesh_.at()).size(), "the width of a dense block");
    if (merges()) shapes_ = std::move(merged_shapes_);
    if (stays()) {
      groups_ = {groups_[static_cast<std::size_t>(mesh_.at().col)]};
      shapes_ = {shapes_[static_cast<std::size_t>(mesh_.at().col)]};
      widen_.emplace(mesh_, cols_, features_, dense_, wide_cut());
      wide_rows_ = narrow(widen_->new_block().rows.size(), "the number of rows of a dense block");
      wide_ = buffer<T, Place>(mesh_.queue(),
                               static_cast<std::size_t>(wide_rows_) * static_cast<std::size_t>(width_));
    }
    const interval x_rows = cols_.block(stays() ? wide_cut().rows : dense_.rows, mesh_.at());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const interval mine =
          sub_block(mesh_.at().row, groups_.size() > 1 ? static_cast<int>(g) : mesh_.at().col);
      groups_[g].first_row = static_cast<local_index>(mine.begin - x_rows.begin);
      for (std::size_t r = 0; r < groups_[g].rows.size(); ++r)
        if (options_.rows == exchange::needed && !merges() && r != own_tile())
          shapes_[g].widths[r] = static_cast<local_index>(groups_[g].needed[r]);
    }
    if (merges()) {
      const auto& merged = a_->merged(mesh_.queue(), own_tile(), mesh_.tile_entries());
      blocks_.emplace(mesh_, shapes_, merged.structure.span(), merged.values.span());
    } else {
      blocks_.emplace(
          mesh_, shapes_,
          options_.rows == exchange::needed ? a_->compacted(mesh_.queue(), own_tile()) : a_->structure.span(),
          a_->values.span());
    }
    if (row_ranks() > 1 && options_.rows == exchange::whole) whole_.emplace(mesh_, groups_, width_);
    if (row_ranks() > 1 && options_.rows == exchange::needed)
      needed_.emplace(mesh_, groups_, share_lists(needed), width_);
    sums_ = partial_sums<T, Place>(mesh_, rows_, features_, sparse_, dense_, stays());
  }

  /// The lists of needed rows of every block of this row of the grid.
  std::vector<needed_rows> share_lists(const needed_rows& mine) {
    if (groups_.size() == 1) return {mine};
    std::vector<needed_rows> lists;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      needed_rows list = static_cast<int>(g) == mesh_.at().col ? mine : needed_rows{};
      list.of_tile.resize(groups_[g].needed.size());
      for (std::size_t r = 0; r < list.of_tile.size(); ++r) {
        list.of_tile[r].resize(static_cast<std::size_t>(groups_[g].needed[r]));
        mesh_.control(axis::col).broadcast(std::span<local_index>(list.of_tile[r]), static_cast<int>(g));
      }
      lists.push_back(std::move(list));
    }
    return lists;
  }

  void start_rows(std::size_t k, int r, matrix_view<const T> x) {
    if (whole_) whole_->start(k, r, x);
    if (needed_) needed_->start(k, r, x);
  }
  void multiply(const tile_part<T>& part, matrix_view<const T> rows, T beta, matrix_view<T> out) {
    if (moves())
      spmm(mesh_.queue(), part.entries, rows, beta, out);
    else
      product_(mesh_.queue(), part.entries, rows, beta, out);  // these blocks come again
  }

  mesh<Place> mesh_;
  std::shared_ptr<const tiles<T, Place>> a_;
  blocking rows_, cols_, features_;
  layout sparse_, dense_;
  spmm_options options_;
  volume predicted_;

  std::vector<row_group> groups_;                   ///< one for each block that this rank multiplies
  bool may_merge_;                                  ///< remote tiles into one, if only needed rows travel
  std::vector<tile_shape> shapes_, merged_shapes_;  ///< of those blocks
  spmm_product<T, Place> product_;
  local_index width_ = 0;
  local_index wide_rows_ = 0;
  buffer<T, Place> wide_;  ///< X, full width, when A stays
  std::optional<redistribution<T, Place>> widen_;
  std::optional<block_stream<T, Place>> blocks_;
  std::optional<whole_exchange<T, Place>> whole_;
  std::optional<needed_exchange<T, Place>> needed_;
  partial_sums<T, Place> sums_;
};

}  // namespace detail

}  // namespace partita
