// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Functions of a matrix and of one number for each of its rows or columns, and what is made of them: scaled
/// rows, norms of rows, layer normalisation.

#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/reductions.hpp"

namespace partita::autodiff {

namespace detail {

/// Y = f(X, numbers), one of them for each row (ByRow) or for each column.
template <class T, class Device, class Function, bool ByRow>
class broadcast_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  broadcast_node(std::vector<typename base::slot*> from, typename base::slot& to, Function f)
      : base(std::move(from), to), f_(f) {}
  void forward() override { apply(f_, this->to().rows()); }
  void backward() override {
    const auto& dy = this->to().gradient->rows();
    const auto slope = [&](auto of, auto& into) {
      apply(of, into);
      partita::zip(into, dy, into, std::multiplies<>{});
    };
    this->in().give([&](auto& d) { slope(slope_of_two<Function, 0>{f_}, d.rows()); });
    if (!this->in(1).needs_gradient) return;
    if (!slopes_.bound()) slopes_.allocate(this->to().at);
    slope(slope_of_two<Function, 1>{f_}, slopes_.rows());
    this->in(1).give([&](auto& d) {
      if constexpr (ByRow)
        partita::row_sums(slopes_.rows(), d.rows());
      else
        algebra::column_sums_part(slopes_.rows(), d.whole());
    });
  }
  traffic predicted_backward() const override {
    const auto& c = this->in(1);
    return !ByRow && c.needs_gradient ? algebra::predicted_part<T>(c.at.mesh, c.at.cols.size()) : traffic{};
  }
  bool keeps_output() const override { return false; }

 private:
  template <class F>
  void apply(F f, dense<T, vertex_rows, Device>& y) {
    const auto& x = this->in().rows();
    auto& numbers = *this->in(1).value;
    if constexpr (ByRow)
      partita::transform_rows(x, numbers.rows(), y, f);
    else
      partita::transform_columns(x, numbers.whole(), y, f);
  }

  Function f_;
  matrix_views<T, Device> slopes_;  ///< d f / d number times dy
};

/// x - part * (sum of the row).
struct less_share {
  double part;
  template <class X>
  constexpr X operator()(const X& x, const X& sum) const {
    return x - X(part) * sum;
  }
};

/// 1 / sqrt(squares part + epsilon).
struct inverse_deviation_of {
  double part, epsilon;
  template <class X>
  constexpr X operator()(const X& squares) const {
    using std::sqrt;
    return X(1) / sqrt(squares * X(part) + X(epsilon));
  }
};

struct root_of {
  template <class X>
  constexpr X operator()(const X& x) const {
    using std::sqrt;
    return sqrt(x);
  }
};

template <bool ByRow, class T, class Device, class Function>
variable<T, Device> broadcast(const char* what, variable<T, Device> x, variable<T, Device> numbers,
                              Function f) {
  require_whole_rows(what, x);
  const bool fits =
      ByRow ? numbers.layout() == vertex_rows && numbers.row_blocking() == x.row_blocking() &&
                  numbers.shape().cols == 1
            : numbers.layout() == replicated && numbers.shape() == matrix_shape{1, x.shape().cols};
  if (!fits)
    base::throw_error<shape_error>({what, ": ", x.shape(), " needs one number for each ",
                                    ByRow ? "row, in its blocks" : "column, replicated", ", not ",
                                    numbers.shape(), " with (", to_string(numbers.layout()), ")"});
  return x.on().template record<broadcast_node<T, Device, Function, ByRow>>(place_of(x), {x, numbers}, false,
                                                                            f);
}

}  // namespace detail

/// y(i, j) = f(x(i, j), r(i, 0)), x (n x f) and r (n x 1) with whole rows, f a function of generic arithmetic
/// (see base::dual); adjoints: dx = f_x dy, dr = the row sums of f_r dy. Local. Throws shape_error.
template <class T, class Device, class Function>
variable<T, Device> transform_rows(variable<T, Device> x, variable<T, Device> r, Function f) {
  return detail::broadcast<true>("transform_rows", x, r, f);
}
/// y(i, j) = f(x(i, j), c(0, j)), x (n x f) with whole rows, c (1 x f) replicated; adjoints: dx = f_x dy, dc
/// = the column sums of f_c dy. Local. Throws shape_error.
template <class T, class Device, class Function>
variable<T, Device> transform_columns(variable<T, Device> x, variable<T, Device> c, Function f) {
  return detail::broadcast<false>("transform_columns", x, c, f);
}

/// y(i, j) = s(i, 0) x(i, j): diag(s) X (n x f). Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> scale_rows(variable<T, Device> s, variable<T, Device> x) {
  return transform_rows(x, s, std::multiplies<>{});
}
/// y(i, 0) = sqrt(the sum over j of x(i, j)^2) (n x 1, n x f), x with whole rows; the adjoint of a row of
/// zeros is not a number. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> row_norms(variable<T, Device> x) {
  return transform(row_sums(x * x), detail::root_of{});
}
/// Y = gamma * (X - mean) / sqrt(var + epsilon) + beta, with mean and biased variance of each row (n x f;
/// gamma and beta 1 x f, replicated). Local. Throws shape_error. Source: Ba, Kiros, Hinton (2016),
/// arXiv:1607.06450, eq. 4.
template <class T, class Device>
variable<T, Device> layer_norm(variable<T, Device> x, variable<T, Device> gamma, variable<T, Device> beta,
                               double epsilon = 1e-5) {
  const double part = 1 / static_cast<double>(x.shape().cols);
  const auto centred = transform_rows(x, row_sums(x), detail::less_share{part});
  const auto inverse = transform(row_sums(centred * centred), detail::inverse_deviation_of{part, epsilon});
  return add_row(beta, transform_columns(scale_rows(inverse, centred), gamma, std::multiplies<>{}));
}

}  // namespace partita::autodiff
