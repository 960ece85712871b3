// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The schedule behind spmm: stages of row_exchange along row, A or X moved along col, sums over depth.
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

#include <memory>

#include "partita/algebra/block_stream.hpp"
#include "partita/algebra/spmm_cost.hpp"
#include "partita/local/head_slice.hpp"

namespace partita::detail {

/// What a product multiplies with: A's own values, or values that an array has for the entries of its tiles.
enum class entry_values : std::uint8_t { own, given };

/// Everything about a product but the types of its matrices.
template <class T, class Device>
class spmm_schedule {
 public:
  spmm_schedule(const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a,
                const blocking& rows, const blocking& cols, const blocking& features, layout sparse_layout,
                layout dense_layout, spmm_options options, entry_values values = entry_values::own)
      : blocks_{m, rows, cols, features, sparse_layout, dense_layout}, a_(std::move(a)) {
    const bool merges =
        values == entry_values::own && blocks_.row_ranks() > 1 && options.rows != row_exchange::full;
    const spmm_cost<T, Device> cost(blocks_, *a_, merges);
    options_ = cost.choose(options);
    predicted_ = cost.received_under(options_);
    predicted_sums_ = cost.received_in_sums(options_);
    merges_ = cost.merges(options_);
    build(cost);
  }

  /// y = alpha A x + beta y; both are this rank's blocks.
  void operator()(matrix_view<const T> x, matrix_view<T> y, T alpha = 1, T beta = 0) {
    if (beta == 0 || sums_.in_place()) return multiply(x, y, alpha, beta);
    const auto size = static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols);
    if (summed_.size() == 0) summed_ = buffer<T, Device>(queue(), size);
    const matrix_view<T> product{summed_.data(), y.rows, y.cols, y.cols};
    multiply(x, product, alpha, 0);
    zip(queue(), linear_combination<T>{1, beta}, product, y, y);
  }

  /// kernel(t, part of tile t of A, the rows of X that its columns count), for all parts of every tile that
  /// this rank multiplies, its own first. Where only needed rows travel and A has its own values, there are
  /// two tiles: this rank's, and one of all others, so that Y is passed over twice on any number of ranks.
  template <class Kernel>
  void for_stages(matrix_view<const T> x, Kernel kernel) {
    if (widen_) {
      (*widen_)(x, wide_rows());
      x = wide_rows();
    }
    const std::size_t own = merges_ ? 0 : blocks_.own_tile();
    start_rows(0, 0, x);
    stream_->start(0);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      stream_->arrive(k);
      if (k + 1 < groups_.size()) stream_->start(k + 1);
      for (const local::csr_slice<T>& part : stream_->parts(k, own)) kernel(own, part, own_rows(k, x));
      for (std::size_t t = 0; t < exchanged_tiles_; ++t) {
        const matrix_view<const T> rows = arrive(k, t);
        if (t + 1 < exchanged_tiles_)
          start_rows(k, t + 1, x);
        else if (k + 1 < groups_.size())
          start_rows(k + 1, 0, x);
        if (t == own) continue;
        for (const local::csr_slice<T>& part : stream_->parts(k, t)) kernel(t, part, rows);
      }
    }
  }
  /// Where the kernels of a run add up what is to become y, and what makes it y.
  accumulator<T> begin(matrix_view<T> y) { return {sums_.empty() ? y : sums_.input()}; }
  void finish(matrix_view<T> y) { sums_(y); }

  /// The columns of the rows that for_stages visits.
  interval columns() const { return blocks_.columns(options_); }
  /// How many nonzeros this rank multiplies in one run, times the columns of X that it multiplies them with.
  global_index multiplications() const {
    std::size_t nonzeros = 0;
    for (const std::size_t n : nonzeros_) nonzeros += n;
    return static_cast<global_index>(nonzeros) * width_;
  }
  /// What this rank receives in one run, and in its stages alone.
  traffic predicted() const { return predicted_; }
  traffic predicted_stages() const {
    return {predicted_.words - predicted_sums_.words, predicted_.messages - predicted_sums_.messages};
  }
  const partita::device_queue<Device>& queue() const { return blocks_.m.queue(); }
  spmm_options options() const { return options_; }

  void require(const blocking& x_rows, const blocking& x_cols, const blocking& y_rows,
               const blocking& y_cols) const {
    const auto& [m, rows, cols, features, sparse_layout, dense_layout] = blocks_;
    if (x_rows == cols && y_rows == rows && x_cols == features && y_cols == features) return;
    throw_error<shape_error>({"spmm planned for A of ", matrix_shape{rows.size(), cols.size()}, " and X of ",
                              matrix_shape{cols.size(), features.size()}, " was given X of ",
                              matrix_shape{x_rows.size(), x_cols.size()}, " and Y of ",
                              matrix_shape{y_rows.size(), y_cols.size()}, ", or blocks cut elsewhere"});
  }

 private:
  void multiply(matrix_view<const T> x, matrix_view<T> y, T alpha, T beta) {
    accumulator<T> sum(sums_.empty() ? y : sums_.input(), beta);
    for_stages(x, [&](std::size_t, const local::csr_slice<T>& part, matrix_view<const T> rows) {
      const auto [of_old, out] = sum.add(part);
      if (alpha != 1)
        spmm_fused(queue(), part.entries, rows, {.alpha = alpha, .beta = of_old}, out);
      else if (blocks_.col_cut() && !stays())
        spmm(queue(), part.entries, rows, of_old, out);
      else
        product_(queue(), part.entries, rows, of_old, out);  // these blocks come again
    });
    finish(y);
  }

  bool stays() const { return blocks_.stays(options_); }

  void build(const spmm_cost<T, Device>& cost) {
    const auto& m = blocks_.m;
    const auto& q = m.queue();
    const std::size_t own = blocks_.own_tile();
    width_ = to_local(columns().size(), "the width of a dense block");
    groups_ = cost.groups();
    std::vector<local::tile_shape> shapes = cost.shapes(options_);
    if (stays()) {
      const auto mine = static_cast<std::size_t>(m.at().col);
      std::swap(groups_.front(), groups_[mine]);
      groups_.erase(groups_.begin() + 1, groups_.end());
      std::swap(shapes.front(), shapes[mine]);
      shapes.erase(shapes.begin() + 1, shapes.end());
      widen_ = std::make_unique<redistribution<T, Device>>(m, blocks_.cols, blocks_.features, blocks_.dense,
                                                           blocks_.wide());
      wide_ = buffer<T, Device>(q, static_cast<std::size_t>(widen_->new_block().size()));
    }
    const bool needed = options_.rows == row_exchange::sparsity_aware;
    const interval x_rows = blocks_.cols.block(blocks_.multiplied(options_).rows, m.at());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const interval mine =
          blocks_.sub_block(m.at().row, groups_.size() > 1 ? static_cast<int>(g) : m.at().col);
      groups_[g].first_row = static_cast<local_index>(mine.begin - x_rows.begin);
      for (std::size_t r = 0; needed && !merges_ && r < groups_[g].rows.size(); ++r)
        if (r != own) shapes[g].widths[r] = static_cast<local_index>(groups_[g].needed[r]);
      nonzeros_.push_back(shapes[g].nonzeros);
    }
    const local::csr_tiles<T, Device>& a = merges_ ? a_->merged(q, own, m.tile_entries()) : *a_;
    const bool compact = needed && !merges_ && a.count() > 1;
    std::span<const local_index> sent;
    if (compact) sent = a.compacted(q, own);
    if (!compact && shapes.size() > 1) sent = a.contiguous(q);
    stream_ = std::make_unique<block_stream<T, Device>>(
        m, std::move(shapes), compact ? a.structure_at(sent.data()) : a.located(), sent, a.all_values());
    sums_ =
        partial_sums<T, Device>(m, blocks_.rows, blocks_.features, blocks_.sparse, blocks_.dense, stays());
    if (blocks_.row_ranks() == 1) return;
    exchanged_tiles_ = merges_ ? 2 : static_cast<std::size_t>(blocks_.row_ranks());
    if (needed)
      needed_ =
          std::make_unique<needed_exchange<T, Device>>(m, groups_, share_lists(a_->needed(q, own)), width_);
    else
      whole_ = std::make_unique<whole_exchange<T, Device>>(m, groups_, width_);
  }

  /// The lists of needed rows of every block of this row of the grid.
  std::vector<local::needed_rows> share_lists(const local::needed_rows& mine) {
    std::vector<local::needed_rows> lists(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      local::needed_rows& list = lists[g];
      if (groups_.size() == 1 || static_cast<int>(g) == blocks_.m.at().col) list = mine;
      if (groups_.size() == 1) break;
      list.of_tile.resize(groups_[g].needed.size());
      for (std::size_t r = 0; r < list.of_tile.size(); ++r) {
        list.of_tile[r].resize(static_cast<std::size_t>(groups_[g].needed[r]));
        blocks_.m.control(axis::col).broadcast(std::span<local_index>(list.of_tile[r]), static_cast<int>(g));
      }
    }
    return lists;
  }

  void start_rows(std::size_t k, std::size_t t, matrix_view<const T> x) {
    if (whole_) whole_->start(k, static_cast<int>(t), x);
    if (needed_ && t == 0) needed_->start(k, x);
  }
  /// The rows of X for tile t of block k.
  matrix_view<const T> arrive(std::size_t k, std::size_t t) {
    if (whole_) return whole_->arrive(k, static_cast<int>(t));
    return merges_ ? needed_->arrive(k) : needed_->arrive(k, static_cast<int>(t));
  }
  matrix_view<const T> own_rows(std::size_t k, matrix_view<const T> x) const {
    const row_group& group = groups_[k];
    return x.block(group.first_row, 0, static_cast<local_index>(group.rows[blocks_.own_tile()]), width_);
  }
  matrix_view<T> wide_rows() {
    return {wide_.data(), static_cast<local_index>(widen_->new_block().rows.size()), width_, width_};
  }

  spmm_blocks<Device> blocks_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  spmm_options options_;
  traffic predicted_, predicted_sums_;
  bool merges_ = false;            ///< remote tiles are one
  std::vector<row_group> groups_;  ///< one for each block that this rank multiplies
  std::vector<std::size_t> nonzeros_;
  std::size_t exchanged_tiles_ = 0;
  spmm_product<T, Device> product_;
  local_index width_ = 0;
  buffer<T, Device> wide_;    ///< X, full width, when A stays
  buffer<T, Device> summed_;  ///< A X, where it is put together before it is added to Y
  std::unique_ptr<redistribution<T, Device>> widen_;
  std::unique_ptr<block_stream<T, Device>> stream_;
  std::unique_ptr<whole_exchange<T, Device>> whole_;
  std::unique_ptr<needed_exchange<T, Device>> needed_;
  partial_sums<T, Device> sums_;
};

}  // namespace partita::detail
