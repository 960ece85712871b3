// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Verbs on variables for several matrices at once: products whose operands are beside each other, and
/// weights that are made of others.

#include "partita/autodiff/products.hpp"

namespace partita::autodiff {

namespace detail {

/// A matrix with whole rows of `times` parts each, as one of `times` as many rows: the same memory.
template <class T, class Device>
class stacked_view {
 public:
  stacked_view(global_index times, const blocking& rows, const blocking& cols)
      : times_(times), rows_(rows), cols_(cols) {}
  matrix_views<T, Device>& operator()(matrix_views<T, Device>& x) {
    if (times_ == 1) return x;
    auto& whole = x.rows();
    auto stacked = dense<T, vertex_rows, Device>::view(whole.mesh(), rows_, cols_, whole.values());
    seen_.see(stacked);
    return seen_;
  }

 private:
  global_index times_;
  blocking rows_, cols_;
  matrix_views<T, Device> seen_;
};

template <class T, class Device>
class stacked_spmm_node final : public node<T, Device> {
 public:
  using typename node<T, Device>::slot;
  using planned = std::shared_ptr<product<T, Device>>;
  using view = stacked_view<T, Device>;

  stacked_spmm_node(std::vector<slot*> from, slot& to, planned forward, planned backward, view x, view y)
      : node<T, Device>(std::move(from), to),
        forward_(std::move(forward)),
        backward_(std::move(backward)),
        x_(std::move(x)),
        y_(std::move(y)) {}

  void forward() override { (*forward_)(x_(*this->in().value), y_(*this->to().value), {}); }
  void backward() override {
    this->in().give([&](auto& d) { (*backward_)(y_(*this->to().gradient), x_(d), {}); });
  }
  traffic predicted_forward() const override { return forward_->predicted(); }
  traffic predicted_backward() const override { return backward_ ? backward_->predicted() : traffic{}; }
  bool keeps_output() const override { return false; }

 private:
  planned forward_, backward_;  ///< Y = A X, dX = A^T dY
  view x_, y_;
};

template <class T, class Map>
struct mapped_entry {
  Map map;
  const T* from;
  constexpr T operator()(global_index i, global_index j, T) const { return map.value(from, i, j); }
};
template <class T, class Map>
struct adjoint_entry {
  Map map;
  const T* from;
  constexpr T operator()(global_index i, global_index j, T) const { return map.adjoint(from, i, j); }
};

/// W = L(V), linear, of replicated matrices.
template <class T, class Device, class Map>
class mapped_weight_node final : public node<T, Device> {
 public:
  using typename node<T, Device>::slot;
  mapped_weight_node(std::vector<slot*> from, slot& to, Map map)
      : node<T, Device>(std::move(from), to), map_(map) {}

  void forward() override {
    auto& w = this->to().value->whole();
    transform_indexed(w, w, mapped_entry<T, Map>{map_, this->in().value->whole().local().data});
  }
  void backward() override {
    const T* const dw = this->to().gradient->whole().local().data;
    this->in().give([&](auto& d) {
      transform_indexed(d.whole(), d.whole(), adjoint_entry<T, Map>{map_, dw});
    });
  }

 private:
  Map map_;
};

/// W(r m + i, j) = sum over b of c(r, b) V(b m + i, j), and its adjoints.
template <class T>
struct combined_entry {
  const T *c, *v;
  global_index bases, rows, cols;
  constexpr T operator()(global_index i, global_index j, T) const {
    T sum = 0;
    for (global_index b = 0; b < bases; ++b)
      sum += c[i / rows * bases + b] * v[(b * rows + i % rows) * cols + j];
    return sum;
  }
};
template <class T>
struct combined_basis_adjoint {
  const T *c, *dw;
  global_index relations, bases, rows, cols;
  constexpr T operator()(global_index i, global_index j, T) const {
    T sum = 0;
    for (global_index r = 0; r < relations; ++r)
      sum += c[r * bases + i / rows] * dw[(r * rows + i % rows) * cols + j];
    return sum;
  }
};
template <class T>
struct combined_coefficient_adjoint {
  const T *v, *dw;
  global_index size;  ///< of a basis
  constexpr T operator()(global_index r, global_index b, T) const {
    T sum = 0;
    for (global_index k = 0; k < size; ++k) sum += dw[r * size + k] * v[b * size + k];
    return sum;
  }
};

template <class T, class Device>
class combined_weight_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;

  void forward() override {
    auto& w = this->to().value->whole();
    const auto [rows, cols] = basis();
    transform_indexed(w, w, combined_entry<T>{data(0), data(1), coefficients().cols, rows, cols});
  }
  void backward() override {
    const T* const dw = this->to().gradient->whole().local().data;
    const auto [rows, cols] = basis();
    this->in(0).give([&](auto& d) {
      transform_indexed(d.whole(), d.whole(), combined_coefficient_adjoint<T>{data(1), dw, rows * cols});
    });
    this->in(1).give([&](auto& d) {
      const auto [relations, bases] = coefficients();
      transform_indexed(d.whole(), d.whole(),
                        combined_basis_adjoint<T>{data(0), dw, relations, bases, rows, cols});
    });
  }

 private:
  const T* data(std::size_t k) const { return this->in(k).value->whole().local().data; }
  matrix_shape coefficients() const { return this->in(0).at.shape(); }
  matrix_shape basis() const {
    const matrix_shape all = this->in(1).at.shape();
    return {all.rows / coefficients().cols, all.cols};
  }
};

template <class T, class Device>
place<Device> weight_place(const autodiff::tape<T, Device>& t, matrix_shape shape) {
  return {t.mesh(), replicated, blocking::even(shape.rows, t.mesh().shape(), nesting::rows),
          blocking::even(shape.cols, t.mesh().shape(), nesting::cols)};
}

}  // namespace detail

/// Y = A X, where A has s rows for each row of Y and t columns for each row of X: A (s m x t n), X (n x t f),
/// Y (m x s f), `rows` those of Y. X is multiplied as if its t parts of f columns were rows below each other,
/// and the s rows of A X that belong to a row of Y are beside each other there. So one product aggregates
/// under several relations what travels once (s > 1), or sums over relations what is sent once (t > 1). `s`:
/// where Y may have no rows, from which it would follow. Adjoint: dX = A^T dY, likewise. Collective over the
/// mesh. What travels: see spmm. Throws shape_error unless X has whole rows, and blocks fit.
template <class T, class Device>
variable<T, Device> stacked_spmm(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& a,
                                 variable<T, Device> x, const blocking& rows, global_index s = 0) {
  auto& t = x.on();
  const auto times = [](global_index of, global_index one) {
    return one > 0 && of % one == 0 ? of / one : 1;
  };
  const global_index of_x = times(a.shape().cols, x.shape().rows),
                     of_y = s > 0 ? s : times(a.shape().rows, rows.size());
  if (x.layout() != vertex_rows || x.shape().cols % of_x != 0 ||
      !(x.row_blocking().stacked(of_x) == a.col_blocking()) || !(rows.stacked(of_y) == a.row_blocking()))
    base::throw_error<shape_error>({"stacked_spmm: A of ", a.shape(), " does not fit X of ", x.shape(),
                                    " with (", to_string(x.layout()), ") and ", rows.size(), " rows of Y"});
  const global_index width = x.shape().cols / of_x;
  const auto columns = blocking::even(width, t.mesh().shape(), nesting::cols),
             of_result = blocking::even(width * of_y, t.mesh().shape(), nesting::cols);
  auto forward = t.make_product(a, vertex_rows, columns, false);
  auto backward = x.needs_gradient() ? t.make_product(a, vertex_rows, columns, true) : nullptr;
  return t.template record<detail::stacked_spmm_node<T, Device>>(
      {t.mesh(), vertex_rows, rows, of_result}, {x}, false, std::move(forward), std::move(backward),
      detail::stacked_view<T, Device>{of_x, a.col_blocking(), columns},
      detail::stacked_view<T, Device>{of_y, a.row_blocking(), columns});
}

/// W = L(V) of replicated matrices, W of `shape`; adjoint: dV = L^T(dW). A Map is a named type with
/// constexpr members value(v, i, j), entry (i, j) of W from the entries v of V, row-major, and adjoint(dw, i,
/// j), that of dV from dW. Local.
template <class T, class Device, class Map>
variable<T, Device> mapped_weight(variable<T, Device> v, matrix_shape shape, Map map) {
  auto& t = v.on();
  return t.template record<detail::mapped_weight_node<T, Device, Map>>(detail::weight_place(t, shape), {v},
                                                                       false, map);
}
/// W_r = sum over b of c_rb V_b, below each other: c (R x B), V (B m x f), W (R m x f), all replicated;
/// adjoints: dc_rb = <dW_r, V_b>, dV_b = sum over r of c_rb dW_r. Local. Throws shape_error.
template <class T, class Device>
variable<T, Device> combined_weights(variable<T, Device> c, variable<T, Device> v) {
  auto& t = v.on();
  const auto [relations, bases] = c.shape();
  if (bases < 1 || v.shape().rows % bases != 0)
    base::throw_error<shape_error>(
        {"coefficients of ", c.shape(), " do not combine bases of ", v.shape(), " below each other"});
  return t.template record<detail::combined_weight_node<T, Device>>(
      detail::weight_place(t, {v.shape().rows / bases * relations, v.shape().cols}), {c, v}, false);
}

}  // namespace partita::autodiff
