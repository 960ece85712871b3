// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Shared by all products with edge matrices: the stages of spmm with A stationary, and checks of operands.

#include <cstddef>
#include <memory>
#include <vector>

#include "partita/algebra/edge_matrix.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/pass.hpp"

namespace partita::algebra::detail {

/// The stages of products with a pattern or, if sums go, with its transpose, for a layout and a width, with
/// several heads side by side.
///
/// Collective over the mesh: the constructor. Throws shape_error if the layouts cannot be multiplied or the
/// heads do not divide the width.
template <class T, class Device>
class edge_schedule {
 public:
  edge_schedule(sparse<T, dynamic_layout, Device> pattern, layout l, const blocking& features,
                local_index heads, row_exchange rows, row_flow flow = row_flow::rows_come)
      : pattern_(std::move(pattern)),
        layout_(fitting(pattern_, l)),
        features_(features),
        heads_(heads),
        head_width_(width_of(features, heads)),
        stages_({pattern_.mesh(), pattern_.row_blocking(), pattern_.col_blocking(), features,
                 pattern_.layout(), l, flow},
                pattern_.analysed(), {stationary::a, rows}, entry_values::given),
        passes_(pattern_.analysed()->inverses()) {}

  const sparse<T, dynamic_layout, Device>& pattern() const { return pattern_; }
  const blocking& features() const { return features_; }
  layout operands() const { return layout_; }
  local_index heads() const { return heads_; }
  product_stages<T, Device>& stages() { return stages_; }
  const product_stages<T, Device>& stages() const { return stages_; }
  /// The plans of passes over the entries, numbered by the parts of all tiles, in order.
  local::entry_passes<Device>& passes() { return passes_; }

  /// The layout in which Y's rows are needed next to X: all of A's rows, and the columns of X multiplied
  /// here.
  layout spread() const {
    return {pattern_.layout().rows, layout_.cols - (pattern_.layout().cols & axis::col)};
  }
  /// The heads whose columns this rank multiplies.
  interval heads_here() const {
    return local::heads_of(features_.block(spread().cols, pattern_.mesh().at()), head_width_);
  }
  /// The position of the visited columns within the heads of e.
  local::head_slice slice(const edge_matrix<T, Device>& e) const {
    if (e.heads() == 0) return {0, head_width_, 0};
    const auto first = static_cast<local_index>(stages_.plan().columns().begin);
    return {e.heads(), head_width_, first - e.first_head() * head_width_};
  }

  /// Throws shape_error unless e has the planned pattern and heads, and x the planned shape, layout and
  /// blockings.
  void require(const edge_matrix<T, Device>& e) const {
    const interval heads{e.first_head(), e.first_head() + e.heads()};
    const bool own = e.pattern().local() == pattern_.local();
    if (own && (heads == interval{0, heads_} || heads == heads_here())) return;
    base::throw_error<shape_error>({"edge products over a pattern of ", pattern_.shape(), " and ", heads_,
                                    " heads were given values of ", e.heads(), " heads over a pattern of ",
                                    e.pattern().shape(), (own ? "" : ", which is a different pattern")});
  }
  template <layout X>
  void require(const dense<T, X, Device>& x, const blocking& rows_of_x) const {
    if (partition::same_blocks(pattern_.mesh().shape(), x.layout(), layout_) &&
        x.row_blocking() == rows_of_x && x.col_blocking() == features_)
      return;
    base::throw_error<shape_error>({"edge products over a pattern of ", pattern_.shape(), " and a width of ",
                                    features_.size(), " were given a matrix of ", x.shape(),
                                    "; shape, layout and blockings must match the plan"});
  }
  template <layout X, layout Y>
  void require(const edge_matrix<T, Device>& e, const dense<T, X, Device>& x,
               const dense<T, Y, Device>& y) const {
    require(e);
    require(x, pattern_.col_blocking());
    require(y, pattern_.row_blocking());
  }

 private:
  static layout fitting(const sparse<T, dynamic_layout, Device>& pattern, layout x) {
    if (!partition::multipliable(pattern.layout(), x)) throw_unfit(pattern, x);
    return x;
  }
  static local_index width_of(const blocking& features, local_index heads) {
    if (heads < 1 || features.size() % heads != 0)
      base::throw_error<shape_error>({heads, " heads do not divide a width of ", features.size()});
    return base::to_local(features.size() / heads, "the width of a head");
  }

  sparse<T, dynamic_layout, Device> pattern_;
  layout layout_;
  blocking features_;
  local_index heads_, head_width_;
  product_stages<T, Device> stages_;
  local::entry_passes<Device> passes_;
};

/// Redistributes Y to the layout spread(), unless it is already in it.
template <class T, class Device>
class spread_rows {
 public:
  explicit spread_rows(const edge_schedule<T, Device>& of) {
    const auto& m = of.pattern().mesh();
    const layout from = of.operands(), to = of.spread();
    if (m.shape().size((from.rows - to.rows) | (from.cols - to.cols)) == 1) return;
    change_.emplace(m, of.pattern().row_blocking(), of.features(), from, to);
    rows_.emplace(m, to, of.pattern().row_blocking(), of.features());
  }

  /// The result is valid until the next call.
  matrix_view<const T> operator()(matrix_view<const T> y) {
    if (!change_) return y;
    (*change_)(y, rows_->local());
    return std::as_const(*rows_).local();
  }
  traffic predicted() const { return change_ ? change_->predicted() : traffic{}; }

 private:
  std::optional<redistribution<T, Device>> change_;
  std::optional<dense<T, dynamic_layout, Device>> rows_;
};

/// Copies of the rows received for tiles, kept as long as the parts of their messages.
template <class T, class Device>
class kept_rows {
 public:
  /// The copy of the rows for tile t, shared by all of its parts; the newest of `parts` shows whether it
  /// exists. It stays until rows for tile t are copied again. Local.
  matrix_view<const T> operator()(const device_queue<Device>& q, const auto& parts, std::size_t t,
                                  matrix_view<const T> rows) {
    if (!parts.empty() && parts.back().tile == t) return parts.back().of.sources;
    if (of_tiles_.size() <= t) of_tiles_.resize(t + 1);
    of_tiles_[t].grow(q, static_cast<std::size_t>(rows.rows) * static_cast<std::size_t>(rows.cols));
    const matrix_view<T> to{of_tiles_[t].data(), rows.rows, rows.cols, rows.cols};
    local::chunked::copy(q, rows, to);
    return to;
  }

 private:
  std::vector<buffer<T, Device>> of_tiles_;
};

}  // namespace partita::algebra::detail
