// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums over rows and columns of variables with whole rows, products of their columns, and the row-wise
/// softmax.

#include <cmath>

#include "partita/algebra/reductions.hpp"
#include "partita/algebra/row_products.hpp"
#include "partita/autodiff/tape.hpp"

namespace partita::autodiff {

namespace detail {

/// Throws shape_error unless x has whole rows.
template <class T, class Device>
void require_whole_rows(const char* what, const variable<T, Device>& x) {
  if (x.layout() == vertex_rows) return;
  base::throw_error<shape_error>({what, " is a verb of whole rows, not of ", x.shape(), " with (",
                                  to_string(x.layout()), "); redistribute it to vertex_rows"});
}

/// Where so many rows and columns are on every rank, and one number for each row of x.
template <class T, class Device>
place<Device> replicated_place(const variable<T, Device>& x, matrix_shape shape) {
  const auto cut = [&](global_index n, nesting by) { return blocking::even(n, x.on().mesh().shape(), by); };
  return {x.on().mesh(), replicated, cut(shape.rows, nesting::rows), cut(shape.cols, nesting::cols)};
}
template <class Device>
place<Device> one_per_row(const place<Device>& x) {
  return {x.mesh, x.layout, x.rows, blocking::even(1, x.mesh.shape(), nesting::cols)};
}

struct second {
  template <class T>
  constexpr T operator()(T, T y) const {
    return y;
  }
};

/// log p -> total p.
struct share_of {
  template <class T>
  constexpr T operator()(T log_p, T total) const {
    return total * std::exp(log_p);
  }
};

template <class T, class Device>
class row_sums_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;

  void forward() override { partita::row_sums(this->in().rows(), this->to().rows()); }
  void backward() override {
    this->in().give([&](auto& d) {
      partita::transform_rows(this->in().rows(), this->to().gradient->rows(), d.rows(), second{});
    });
  }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }
};

/// A replicated matrix of which ranks compute parts. Its gradient is a sum of contributions, too, before what
/// it was made of gets its own.
template <class T, class Device>
class summed_node : public node<T, Device> {
 public:
  using node<T, Device>::node;

  traffic predicted_forward() const override {
    return algebra::predicted_part<T>(this->to().at.mesh, elements()) + of_sum();
  }
  traffic predicted_backward() const override { return of_sum(); }
  bool keeps_output() const override { return false; }

 protected:
  void sum(matrix_views<T, Device>& parts) const {
    algebra::sum_parts(this->to().at.mesh, parts.whole().values());
  }

 private:
  global_index elements() const { return this->to().at.rows.size() * this->to().at.cols.size(); }
  traffic of_sum() const { return algebra::predicted_sum_of_parts<T>(this->to().at.mesh, elements()); }
};

template <class T, class Device>
class column_sums_node final : public summed_node<T, Device> {
 public:
  using summed_node<T, Device>::summed_node;

  void forward() override {
    algebra::column_sums_part(this->in().rows(), this->to().value->whole());
    this->sum(*this->to().value);
  }
  void backward() override {
    this->sum(*this->to().gradient);
    this->in().give([&](auto& d) {
      partita::fill(d.rows(), T(0));
      partita::add_row(this->to().gradient->whole(), d.rows());
    });
  }
  bool reads_again() const override { return false; }
};

template <class T, class Device>
class inner_node final : public summed_node<T, Device> {
 public:
  using summed_node<T, Device>::summed_node;

  void forward() override {
    algebra::weight_gradient_part(this->in().operand(), this->in(1).rows(), this->to().value->whole());
    this->sum(*this->to().value);
  }
  void backward() override {
    this->sum(*this->to().gradient);
    const auto& d = this->to().gradient->whole();
    this->in().give([&](auto& dx) { partita::gemm(this->in(1).rows(), partita::transposed(d), dx.rows()); });
    this->in(1).give([&](auto& dy) { partita::gemm(this->in().operand(), d, dy.rows()); });
  }
};

template <class T, class Device>
class softmax_node final : public node<T, Device> {
 public:
  using typename node<T, Device>::slot;

  softmax_node(std::vector<slot*> from, slot& to, bool logarithm)
      : node<T, Device>(std::move(from), to), logarithm_(logarithm) {}
  bool reads_again() const override { return false; }
  void settle() override { sums_.allocate(one_per_row(this->to().at)); }
  void forward() override {
    if (logarithm_)
      algebra::log_softmax(this->in().rows(), this->to().rows(), memory_);
    else
      partita::row_softmax(this->in().rows(), this->to().rows(), memory_);
  }
  void backward() override {
    const auto &y = this->to().rows(), &dy = this->to().gradient->rows();
    auto& sums = sums_.rows();
    this->in().give([&](auto& of_x) {
      auto& dx = of_x.rows();
      if (logarithm_) {
        partita::row_sums(dy, sums);
        partita::transform_rows(y, sums, dx, share_of{});
        return partita::zip(dy, dx, dx, std::minus<>{});
      }
      partita::zip(y, dy, dx, std::multiplies<>{});
      partita::row_sums(dx, sums);
      partita::transform_rows(dy, sums, dx, std::minus<>{});
      partita::zip(y, dx, dx, std::multiplies<>{});
    });
  }

 private:
  bool logarithm_;
  matrix_views<T, Device> sums_;
  buffer<T, Device> memory_;  ///< of forward
};

template <class T, class Device>
variable<T, Device> softmax(const char* what, variable<T, Device> x, bool logarithm) {
  require_whole_rows(what, x);
  return x.on().template record<softmax_node<T, Device>>(
      {x.on().mesh(), vertex_rows, x.row_blocking(), x.col_blocking()}, {x}, false, logarithm);
}

}  // namespace detail

/// y(i, 0) = the sum over j of x(i, j) (n x 1, n x f), x with whole rows; adjoint: dx(i, j) = dy(i, 0).
/// Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> row_sums(variable<T, Device> x) {
  detail::require_whole_rows("row_sums", x);
  return x.on().template record<detail::row_sums_node<T, Device>>(
      detail::one_per_row<Device>({x.on().mesh(), vertex_rows, x.row_blocking(), x.col_blocking()}), {x},
      false);
}

/// y(0, j) = the sum over i of x(i, j) (1 x f, n x f), x with whole rows, y on every rank; adjoint: dx(i, j)
/// = dy(0, j). The mean over vertices is 1 / n of it. Collective over the mesh. What travels: all-reduces of
/// f elements, in forward and in backward. Throws shape_error.
template <class T, class Device>
variable<T, Device> column_sums(variable<T, Device> x) {
  detail::require_whole_rows("column_sums", x);
  return x.on().template record<detail::column_sums_node<T, Device>>(
      detail::replicated_place(x, {1, x.shape().cols}), {x}, false);
}

/// M = X^T Y (a x b = a x n times n x b), X and Y with whole rows, M on every rank; adjoints: dX = Y dM^T, dY
/// = X dM. Collective over the mesh. What travels: all-reduces of a b elements, in forward and in backward.
/// Throws shape_error.
template <class T, class Device>
variable<T, Device> inner(variable<T, Device> x, variable<T, Device> y) {
  detail::require_whole_rows("inner", x);
  detail::require_whole_rows("inner", y);
  if (!(x.row_blocking() == y.row_blocking()))
    base::throw_error<shape_error>({"inner multiplies columns of the same length and blocking, not those of ",
                                    x.shape(), " and ", y.shape()});
  return x.on().template record<detail::inner_node<T, Device>>(
      detail::replicated_place(x, {x.shape().cols, y.shape().cols}), {x, y}, false);
}

/// y(i, j) = exp(x(i, j)) / the sum over k of exp(x(i, k)), x with whole rows; adjoint: dx = y (dy - the row
/// sum of y dy). Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> row_softmax(variable<T, Device> x) {
  return detail::softmax("row_softmax", x, false);
}
/// Its logarithm; adjoint: dx = dy - exp(y) times the row sum of dy.
template <class T, class Device>
variable<T, Device> log_softmax(variable<T, Device> x) {
  return detail::softmax("log_softmax", x, true);
}

}  // namespace partita::autodiff
