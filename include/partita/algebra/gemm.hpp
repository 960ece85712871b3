#pragma once
/// Products with a replicated weight, and the gradient of that weight.

#include <optional>

#include "partita/algebra/sum_along.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita {

/// How X W is formed when X's columns are cut.
enum class gemm_form : std::uint8_t {
  automatic,    ///< whichever makes the busiest rank receive less
  full_width,   ///< X goes to full-width rows, is multiplied, and the result comes back
  partial_sums  ///< each rank multiplies its columns with its rows of W; the partial products are
                ///< reduce-scattered
};

namespace detail {

/// gemm_plan for a layout that is known as a value.
template <class T, class Place>
class gemm_schedule {
 public:
  gemm_schedule(const mesh<Place>& m, const blocking& rows, const blocking& features_in,
                const blocking& features_out, cut layout, bool transpose_weight, gemm_form form)
      : mesh_(m),
        rows_(rows),
        in_(features_in),
        out_(features_out),
        mine_(features_in.block(layout.cols, m.at())),
        transpose_(transpose_weight),
        form_(form) {
    if (m.shape().size(layout.cols) == 1) return;
    const cut wide{layout.used(), {}};
    redistribution<T, Place> widen(m, rows, in_, layout, wide), narrow_again(m, rows, out_, wide, layout);
    const global_index height = rows.block(layout.rows, m.at()).size();
    collective scatter;
    scatter.kind = operation::reduce_scatter;
    scatter.count = height * out_.block(layout.cols, m.at()).size();
    const communicator& group = m.along(layout.cols);
    const volume full = widen.predicted() + narrow_again.predicted();
    const volume partial = received(scatter, group.rank(), group.size());
    if (form_ == gemm_form::automatic) {
      global_index most[] = {full.elements, partial.elements};
      m.world().all_reduce(std::span<global_index>(most), reduction::max);
      form_ = most[0] <= most[1] ? gemm_form::full_width : gemm_form::partial_sums;
    }
    predicted_ = form_ == gemm_form::full_width ? full : partial;
    if (form_ == gemm_form::full_width) {
      wide_rows_ = narrow(rows.block(wide.rows, m.at()).size(), "the number of rows of a wide block");
      wide_x_ = buffer<T, Place>(m.queue(), wide_size(in_));
      wide_y_ = buffer<T, Place>(m.queue(), wide_size(out_));
      widen_.emplace(std::move(widen));
      narrow_.emplace(std::move(narrow_again));
    } else {
      sum_.emplace(m, layout.cols, narrow(height, "the number of rows of a dense block"),
                   narrow(out_.size(), "the width of a matrix"),
                   pieces_along(m, layout.cols, out_, layout.cols), false);
    }
  }

  /// Throws shape_error naming the shapes unless they are those planned for.
  void require(const blocking& x_rows, const blocking& x_cols, extent w, const blocking& y_rows,
               const blocking& y_cols) const {
    const extent weight = transpose_ ? extent{out_.size(), in_.size()} : extent{in_.size(), out_.size()};
    if (!(x_rows == rows_ && y_rows == rows_ && x_cols == in_ && y_cols == out_ && w == weight))
      throw shape_error("gemm planned for X of " + to_string(extent{rows_.size(), in_.size()}) +
                        " and a weight of " + to_string(weight) + " was given X of " +
                        to_string(extent{x_rows.size(), x_cols.size()}) + ", W of " + to_string(w) +
                        " and Y of " + to_string(extent{y_rows.size(), y_cols.size()}));
  }

  /// Of this rank's blocks; that of y has no gaps.
  void operator()(matrix_view<const T> x, matrix_view<const T> w, matrix_view<T> y) {
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

  volume predicted() const { return predicted_; }
  gemm_form form() const { return form_; }

 private:
  std::size_t wide_size(const blocking& features) const {
    return static_cast<std::size_t>(wide_rows_) * static_cast<std::size_t>(features.size());
  }
  matrix_view<T> wide(buffer<T, Place>& b, const blocking& features) const {
    const auto cols = static_cast<local_index>(features.size());
    return {b.data(), wide_rows_, cols, cols};
  }
  void multiply(matrix_view<const T> x, matrix_view<const T> w, matrix_view<T> y) {
    kernels<Place>::gemm(mesh_.queue(), false, transpose_, T(1), x, w, T(0), y);
  }

  mesh<Place> mesh_;
  blocking rows_, in_, out_;
  interval mine_;  ///< columns of X
  bool transpose_;
  gemm_form form_;
  volume predicted_;
  local_index wide_rows_ = 0;
  buffer<T, Place> wide_x_, wide_y_;
  std::optional<redistribution<T, Place>> widen_, narrow_;
  std::optional<scattered_sum<T, Place>> sum_;
};

}  // namespace detail

/// A planned Y = X op(W), op(W) = W or W^T (n x f_out = n x f_in times f_in x f_out); X and Y in `Layout`, W
/// on every rank.
///
/// Every rank of the mesh must construct and run it. What travels: nothing when X's columns are whole; under
/// full_width (p-1)/p of X's and of Y's elements, under partial_sums p-1 blocks of Y, where p ranks share a
/// row of X.
template <class T, class Layout, class Place>
class gemm_plan {
 public:
  gemm_plan(const mesh<Place>& m, const blocking& rows, const blocking& features_in,
            const blocking& features_out, bool transpose_weight = false,
            gemm_form form = gemm_form::automatic)
      : schedule_(m, rows, features_in, features_out, Layout::value, transpose_weight, form) {}

  /// Throws shape_error naming the shapes when the operands are not those planned for.
  void operator()(const dense<T, Layout, Place>& x, const dense<T, replicated, Place>& w,
                  dense<T, Layout, Place>& y) {
    schedule_.require(x.row_blocking(), x.col_blocking(), w.shape(), y.row_blocking(), y.col_blocking());
    schedule_(x.local(), w.local(), y.local());
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const { return schedule_.predicted(); }
  gemm_form form() const { return schedule_.form(); }

 private:
  detail::gemm_schedule<T, Place> schedule_;
};

namespace detail {

template <class T, class Layout, class Place>
dense<T, Layout, Place> multiply_once(const dense<T, Layout, Place>& x, const dense<T, replicated, Place>& w,
                                      bool transpose, gemm_form form) {
  const global_index width = transpose ? w.shape().rows : w.shape().cols;
  const blocking out = blocking::even(width, x.mesh().shape(), nesting::cols);
  dense<T, Layout, Place> y(x.mesh(), x.row_blocking(), out);
  gemm_plan<T, Layout, Place>(x.mesh(), x.row_blocking(), x.col_blocking(), out, transpose, form)(x, w, y);
  return y;
}

}  // namespace detail

/// Y = X W, planned and run once. Every rank of the mesh must call.
template <class T, class Layout, class Place>
dense<T, Layout, Place> gemm(const dense<T, Layout, Place>& x, const dense<T, replicated, Place>& w,
                             gemm_form form = gemm_form::automatic) {
  return detail::multiply_once(x, w, false, form);
}

/// Y = X W^T, planned and run once. Every rank of the mesh must call.
template <class T, class Layout, class Place>
dense<T, Layout, Place> gemm_transposed(const dense<T, Layout, Place>& x,
                                        const dense<T, replicated, Place>& w,
                                        gemm_form form = gemm_form::automatic) {
  return detail::multiply_once(x, w, true, form);
}

/// dW = X^T G (f_in x f_out = (n x f_in)^T times n x f_out), on every rank; X and G in one layout.
///
/// Every rank of the mesh must call. What travels: X and G go to full-width rows when their columns are cut;
/// then one all-reduce of dW over the ranks that hold different rows. Throws shape_error naming the shapes.
template <class T, class Layout, class Place>
dense<T, replicated, Place> weight_gradient(const dense<T, Layout, Place>& x,
                                            const dense<T, Layout, Place>& g) {
  if (!(x.row_blocking() == g.row_blocking()))
    throw shape_error("a weight gradient needs X and G with the same rows, not X of " + to_string(x.shape()) +
                      " and G of " + to_string(g.shape()));
  dense<T, replicated, Place> dw(x.mesh(), extent{x.shape().cols, g.shape().cols});
  const auto multiply = [&](const auto& wide_x, const auto& wide_g) {
    kernels<Place>::gemm(x.mesh().queue(), true, false, T(1), wide_x.local(), wide_g.local(), T(0),
                         dw.local());
  };
  if constexpr (Layout::value.cols.empty())
    multiply(x, g);
  else
    multiply(redistribute<full_width<Layout>>(x), redistribute<full_width<Layout>>(g));
  if (const auto& group = x.mesh().along(Layout::value.used()); group.size() > 1)
    group.all_reduce(dw.values());
  return dw;
}

}  // namespace partita
