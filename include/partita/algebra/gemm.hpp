// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense products with a replicated weight, and the gradient of that weight.

#include <memory>

#include "partita/algebra/sum_along.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita {

/// How X W is computed when X's columns are partitioned.
enum class gemm_form : std::uint8_t {
  automatic,    ///< whichever minimises what the busiest rank receives
  full_width,   ///< redistribute X to full-width rows, multiply, and redistribute the result
  partial_sums  ///< multiply own columns with the matching rows of W, then reduce-scatter
};

/// W^T of a replicated W, which must outlive it.
template <class T, class Device>
struct transposed_weight {
  const dense<T, replicated, Device>& matrix;
};
template <class T, class Device>
transposed_weight<T, Device> transposed(const dense<T, replicated, Device>& w) {
  return {w};
}

/// A planned Y = X op(W), op(W) = W or W^T (n x f_out = n x f_in times f_in x f_out); X and Y in the same
/// layout, W on every rank.
///
/// Collective over the mesh: constructor and call. What travels: nothing when X's columns are not
/// partitioned; otherwise, with p ranks sharing a row of X, (p-1)/p of the elements of X and of Y
/// (full_width) or p-1 blocks of Y (partial_sums).
template <class T, class Device>
class gemm_plan {
 public:
  gemm_plan(const mesh<Device>& m, layout l, const blocking& rows, const blocking& features_in,
            const blocking& features_out, bool transpose_weight = false,
            gemm_form form = gemm_form::automatic,
            std::source_location where = std::source_location::current())
      : mesh_(m),
        layout_(l),
        rows_(rows),
        in_(features_in),
        out_(features_out),
        mine_(features_in.block(l.cols, m.at())),
        transpose_(transpose_weight),
        form_(form) {
    if (m.shape().size(l.cols) == 1) return;
    const comm::call_site scope(where);
    const layout wide = partition::full_width(l);
    const global_index height = rows.block(l.rows, m.at()).size();
    comm::collective scatter;
    scatter.kind = operation::reduce_scatter;
    scatter.count = height * out_.block(l.cols, m.at()).size();
    const communicator& group = m.along(l.cols);
    const traffic full = redistribution<T, Device>::predicted(m, rows, in_, l, wide) +
                         redistribution<T, Device>::predicted(m, rows, out_, wide, l);
    const traffic partial = received(scatter, group.rank(), group.size());
    if (form_ == gemm_form::automatic) {
      global_index most[] = {full.words, partial.words};
      m.world().all_reduce(most, reduction::max);
      form_ = most[0] <= most[1] ? gemm_form::full_width : gemm_form::partial_sums;
    }
    predicted_ = form_ == gemm_form::full_width ? full : partial;
    if (form_ == gemm_form::full_width) {
      wide_rows_ = to_local(rows.block(wide.rows, m.at()).size(), "the number of rows of a wide block");
      wide_x_ = buffer<T, Device>(m.queue(), wide_size(in_));
      wide_y_ = buffer<T, Device>(m.queue(), wide_size(out_));
      widen_ = std::make_unique<redistribution<T, Device>>(m, rows, in_, l, wide);
      narrow_ = std::make_unique<redistribution<T, Device>>(m, rows, out_, wide, l);
    } else {
      sum_ = std::make_unique<detail::scattered_sum<T, Device>>(
          m, l.cols, to_local(height, "the number of rows of a dense block"),
          to_local(out_.size(), "the width of a matrix"), detail::pieces_along(m, l.cols, out_, l.cols),
          false);
    }
  }

  /// For X like x, and W of this shape.
  template <layout L>
  gemm_plan(const dense<T, L, Device>& x, matrix_shape weight, bool transpose_weight = false,
            gemm_form form = gemm_form::automatic,
            std::source_location where = std::source_location::current())
      : gemm_plan(
            x.mesh(), x.layout(), x.row_blocking(), x.col_blocking(),
            blocking::even(transpose_weight ? weight.rows : weight.cols, x.mesh().shape(), nesting::cols),
            transpose_weight, form, where) {}

  /// y = x op(w). Throws shape_error naming the shapes when the operands do not match the plan.
  template <layout X, layout W, layout Y>
  void operator()(const dense<T, X, Device>& x, const dense<T, W, Device>& w, dense<T, Y, Device>& y,
                  std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    const matrix_shape weight =
        transpose_ ? matrix_shape{out_.size(), in_.size()} : matrix_shape{in_.size(), out_.size()};
    if (!(x.row_blocking() == rows_ && y.row_blocking() == rows_ && x.col_blocking() == in_ &&
          y.col_blocking() == out_ && w.shape() == weight))
      throw_error<shape_error>({"gemm planned for X of ", matrix_shape{rows_.size(), in_.size()},
                                " and a weight of ", weight, " was given X of ", x.shape(), ", W of ",
                                w.shape(), " and Y of ", y.shape(),
                                "; shapes and blockings must match the plan"});
    if (x.layout() != layout_ || y.layout() != layout_ || w.layout() != replicated)
      throw_error<shape_error>({"gemm planned for X and Y with ", layout_, " was given X with ", x.layout(),
                                ", Y with ", y.layout(), " and a weight with ", w.layout()});
    detail::require_distinct("gemm", x, y);
    multiply_blocks(x.local(), w.local(), y.local());
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const { return predicted_; }
  gemm_form form() const { return form_; }

 private:
  /// The block of y is contiguous.
  void multiply_blocks(matrix_view<const T> x, matrix_view<const T> w, matrix_view<T> y) {
    if (widen_) {
      const matrix_view<T> wide_x = wide(wide_x_, in_), wide_y = wide(wide_y_, out_);
      (*widen_)(x, wide_x);  // (n/p, f_in)
      multiply(wide_x, w, wide_y);
      (*narrow_)(wide_y, y);
    } else if (sum_) {
      const auto begin = static_cast<local_index>(mine_.begin),
                 width = static_cast<local_index>(mine_.size());
      multiply(x, transpose_ ? w.block(0, begin, w.rows, width) : w.block(begin, 0, width, w.cols),
               sum_->input());
      (*sum_)(std::span<T>(y.data, static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols)));
    } else {
      multiply(x, w, y);
    }
  }

  std::size_t wide_size(const blocking& features) const {
    return static_cast<std::size_t>(wide_rows_) * static_cast<std::size_t>(features.size());
  }
  matrix_view<T> wide(buffer<T, Device>& b, const blocking& features) const {
    const auto cols = static_cast<local_index>(features.size());
    return {b.data(), wide_rows_, cols, cols};
  }
  void multiply(matrix_view<const T> x, matrix_view<const T> w, matrix_view<T> y) {
    gemm(mesh_.queue(), false, transpose_, T(1), x, w, T(0), y);
  }

  mesh<Device> mesh_;
  layout layout_;
  blocking rows_, in_, out_;
  interval mine_;  ///< columns of X
  bool transpose_;
  gemm_form form_;
  traffic predicted_;
  local_index wide_rows_ = 0;
  buffer<T, Device> wide_x_, wide_y_;
  std::unique_ptr<redistribution<T, Device>> widen_, narrow_;
  std::unique_ptr<detail::scattered_sum<T, Device>> sum_;
};

namespace detail {

template <class T, layout L, class Device, layout W>
dense<T, L, Device> multiply_once(const dense<T, L, Device>& x, const dense<T, W, Device>& w, bool transpose,
                                  gemm_form form) {
  const global_index width = transpose ? w.shape().rows : w.shape().cols;
  if ((transpose ? w.shape().cols : w.shape().rows) != x.shape().cols)
    throw_error<shape_error>({"gemm: X of ", x.shape(), " cannot be multiplied by ",
                              transpose ? "the transpose of " : "", "W of ", w.shape()});
  const blocking out = blocking::even(width, x.mesh().shape(), nesting::cols);
  dense<T, L, Device> y(x.mesh(), x.layout(), x.row_blocking(), out);
  gemm_plan(x, w.shape(), transpose, form)(x, w, y);
  return y;
}

}  // namespace detail

/// Y = X W, planned and run once. Collective over the mesh.
template <class T, layout L, class Device, layout W>
dense<T, L, Device> gemm(const dense<T, L, Device>& x, const dense<T, W, Device>& w,
                         gemm_form form = gemm_form::automatic,
                         std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  return detail::multiply_once(x, w, false, form);
}

/// Y = X W^T, planned and run once. Collective over the mesh.
template <class T, layout L, class Device>
dense<T, L, Device> gemm(const dense<T, L, Device>& x, transposed_weight<T, Device> w,
                         gemm_form form = gemm_form::automatic,
                         std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  return detail::multiply_once(x, w.matrix, true, form);
}

/// X^T Y (f x g = (n x f)^T times n x g), on every rank; X and Y in the same layout. Computes weight
/// gradients, for example.
///
/// Collective over the mesh. What travels: X and Y are redistributed to full-width rows when their columns
/// are partitioned; then one all-reduce of the result over the ranks that own different rows. Throws
/// shape_error naming the shapes.
template <class T, layout X, layout Y, class Device>
dense<T, replicated, Device> inner(const dense<T, X, Device>& x, const dense<T, Y, Device>& y,
                                   std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (!(x.row_blocking() == y.row_blocking()))
    throw_error<shape_error>(
        {"inner needs X and Y with the same rows, not X of ", x.shape(), " and Y of ", y.shape()});
  if (x.layout() != y.layout())
    throw_error<shape_error>(
        {"inner needs X and Y in one layout, not X with ", x.layout(), " and Y with ", y.layout()});
  dense<T, replicated, Device> result(x.mesh(), matrix_shape{x.shape().cols, y.shape().cols});  // (f, g)
  const auto multiply = [&](const auto& wide_x, const auto& wide_y) {
    gemm(x.mesh().queue(), true, false, T(1), wide_x.local(), wide_y.local(), T(0), result.local());
  };
  if (x.layout().cols.empty())
    multiply(x, y);
  else
    multiply(redistribute(x, partition::full_width(x.layout())),
             redistribute(y, partition::full_width(y.layout())));
  if (const auto& group = x.mesh().along(x.layout().used()); group.size() > 1)
    group.all_reduce(result.values());
  return result;
}

}  // namespace partita
