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
      : mesh_(m),
        rows_(rows),
        in_(features_in),
        out_(features_out),
        transpose_(transpose_weight),
        form_(form) {
    if (m.shape().size(layout_cut.cols) == 1) return;
    redistribution<T, Place> widen(m, rows, in_, layout_cut, wide_cut),
        narrow_again(m, rows, out_, wide_cut, layout_cut);
    collective scatter;
    scatter.kind = operation::reduce_scatter;
    scatter.count = rows.block(layout_cut.rows, m.at()).size() * out_.block(layout_cut.cols, m.at()).size();
    const communicator& group = m.along(layout_cut.cols);
    const volume full = widen.predicted() + narrow_again.predicted();
    const volume partial = received(scatter, group.rank(), group.size());
    if (form_ == gemm_form::automatic) {
      global_index most[] = {full.elements, partial.elements};
      m.world().all_reduce(std::span<global_index>(most), reduction::max);
      form_ = most[0] <= most[1] ? gemm_form::full_width : gemm_form::partial_sums;
    }
    predicted_ = form_ == gemm_form::full_width ? full : partial;
    if (form_ == gemm_form::full_width) {
      wide_x_.emplace(m, rows, in_);
      wide_y_.emplace(m, rows, out_);
      widen_.emplace(std::move(widen));
      narrow_.emplace(std::move(narrow_again));
    } else {
      sum_.emplace(m, layout_cut.cols,
                   narrow(rows.block(layout_cut.rows, m.at()).size(), "the number of rows of a dense block"),
                   narrow(out_.size(), "the width of a matrix"),
                   detail::pieces_along(m, layout_cut.cols, out_, layout_cut.cols), false);
    }
  }

  /// Throws shape_error naming the shapes when the operands are not those planned for.
  void operator()(const dense<T, Layout, Place>& x, const dense<T, replicated, Place>& w,
                  dense<T, Layout, Place>& y) {
    const extent weight = transpose_ ? extent{out_.size(), in_.size()} : extent{in_.size(), out_.size()};
    if (!(x.row_blocking() == rows_ && y.row_blocking() == rows_ && x.col_blocking() == in_ &&
          y.col_blocking() == out_ && w.shape() == weight))
      throw shape_error("gemm planned for X of " + to_string(extent{rows_.size(), in_.size()}) +
                        " and a weight of " + to_string(weight) + " was given X of " + to_string(x.shape()) +
                        ", W of " + to_string(w.shape()) + " and Y of " + to_string(y.shape()));
    if (widen_) {
      (*widen_)(x.local(), wide_x_->local());  // (n/p, f_in)
      multiply(std::as_const(*wide_x_).local(), w.local(), wide_y_->local());
      (*narrow_)(std::as_const(*wide_y_).local(), y.local());
    } else if (sum_) {
      const interval mine = x.col_range();
      const auto begin = static_cast<local_index>(mine.begin), width = static_cast<local_index>(mine.size());
      const matrix_view<const T> all = w.local();
      multiply(x.local(),
               transpose_ ? all.block(0, begin, all.rows, width) : all.block(begin, 0, width, all.cols),
               sum_->input());
      (*sum_)(y.values());
    } else {
      multiply(x.local(), w.local(), y.local());
    }
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const { return predicted_; }
  gemm_form form() const { return form_; }

 private:
  static constexpr cut layout_cut = Layout::value;
  static constexpr cut wide_cut = full_width<Layout>::value;

  void multiply(matrix_view<const T> x, matrix_view<const T> w, matrix_view<T> y) {
    kernels<Place>::gemm(mesh_.queue(), false, transpose_, T(1), x, w, T(0), y);
  }

  mesh<Place> mesh_;
  blocking rows_, in_, out_;
  bool transpose_;
  gemm_form form_;
  volume predicted_;
  std::optional<dense<T, full_width<Layout>, Place>> wide_x_, wide_y_;
  std::optional<redistribution<T, Place>> widen_, narrow_;
  std::optional<detail::scattered_sum<T, Place>> sum_;
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
