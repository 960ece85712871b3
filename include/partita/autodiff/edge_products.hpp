// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention as a composition, on variables: products of the rows at both ends of an edge, the softmax of a
/// row's entries, and products with edge matrices.

#include "partita/algebra/edge_softmax.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/autodiff/edges.hpp"

namespace partita::autodiff {

namespace detail {

template <class T, class Device>
class edge_softmax_node final : public in_place_node<T, Device, whole_edges> {
  using base = in_place_node<T, Device, whole_edges>;
  using typename base::matrix;
  using typename base::slot;

 public:
  edge_softmax_node(std::vector<slot*> from, slot& to)
      : base(std::move(from), to),
        plan_(*this->in().pattern, static_cast<local_index>(this->in().at.cols.size())) {}
  traffic predicted_forward() const override { return plan_.predicted_forward(); }
  traffic predicted_backward() const override { return plan_.predicted_backward(); }
  bool overwrites_gradient() const override { return this->is_in_place(); }

 protected:
  bool fuses(node<T, Device>&) override { return false; }
  void compute(const matrix& x, matrix& y) override {
    if (&x != &y) partita::copy(x, y);
    plan_.forward(y);
  }
  void pull(const matrix& dy, matrix& dx) override {
    if (&dx != &dy) partita::copy(dy, dx);
    plan_.backward(this->to().value->edges(), dx);
  }

 private:
  algebra::edge_softmax_plan<T, Device> plan_;
};

/// What Y = E X, its transpose and E = pattern o (Y X^T), which are each other's adjoints, are planned with.
template <class T, class Device>
class edge_product_node : public node<T, Device> {
 public:
  using typename node<T, Device>::slot;

  /// For dense matrices like `x`.
  edge_product_node(std::vector<slot*> from, slot& to, const sparse<T, dynamic_layout, Device>& pattern,
                    const slot& x, local_index heads)
      : node<T, Device>(std::move(from), to), multiply(pattern, x.at.layout, x.at.cols, heads) {}

 protected:
  edge_spmm_plan<T, Device> multiply;
  std::optional<algebra::transposed_edge_spmm_plan<T, Device>> transposed;
  std::optional<sddmm_plan<T, Device>> sample;
};

/// Y = E X.
template <class T, class Device>
class edge_spmm_node final : public edge_product_node<T, Device> {
 public:
  using typename node<T, Device>::slot;

  edge_spmm_node(std::vector<slot*> from, slot& to)
      : edge_product_node<T, Device>(from, to, *from[0]->pattern, *from[1],
                                     static_cast<local_index>(from[0]->at.cols.size())) {
    if (this->in(0).needs_gradient) this->sample.emplace(this->multiply);
    if (this->in(1).needs_gradient) this->transposed.emplace(this->multiply);
  }
  void forward() override {
    this->multiply(this->in().value->edges(), this->in(1).value->any(), this->to().value->any());
  }
  void backward() override {
    const auto& dy = this->to().gradient->any();
    this->in(0).give([&](auto& d) { (*this->sample)(dy, this->in(1).value->any(), d.own_edges()); });
    this->in(1).give([&](auto& d) { (*this->transposed)(this->in().value->edges(), dy, d.any()); });
  }
  traffic predicted_forward() const override { return this->multiply.predicted(); }
  traffic predicted_backward() const override {
    return (this->sample ? this->sample->predicted() : traffic{}) +
           (this->transposed ? this->transposed->predicted() : traffic{});
  }
  bool keeps_output() const override { return false; }
};

/// E = pattern o (Y X^T), of X and Y.
template <class T, class Device>
class sddmm_node final : public edge_product_node<T, Device> {
 public:
  using typename node<T, Device>::slot;

  sddmm_node(std::vector<slot*> from, slot& to, const sparse<T, dynamic_layout, Device>& pattern)
      : edge_product_node<T, Device>(from, to, pattern, *from[0],
                                     static_cast<local_index>(to.at.cols.size())) {
    this->sample.emplace(this->multiply);
    if (this->in(0).needs_gradient) this->transposed.emplace(this->multiply);
  }
  void forward() override {
    (*this->sample)(this->in(1).value->any(), this->in(0).value->any(), this->to().value->own_edges());
  }
  void backward() override {
    const auto& de = this->to().gradient->edges();
    this->in(0).give([&](auto& d) { (*this->transposed)(de, this->in(1).value->any(), d.any()); });
    this->in(1).give([&](auto& d) { this->multiply(de, this->in(0).value->any(), d.any()); });
  }
  traffic predicted_forward() const override { return this->sample->predicted(); }
  traffic predicted_backward() const override {
    return (this->transposed ? this->transposed->predicted() : traffic{}) +
           (this->in(1).needs_gradient ? this->multiply.predicted() : traffic{});
  }
  bool keeps_output() const override { return false; }
};

}  // namespace detail

/// alpha(v, u, h) = exp(s(v, u, h)) / the sum over u' of exp(s(v, u', h)); adjoint: ds(v, u) = alpha(v, u)
/// (dalpha(v, u) - the sum over u' of alpha(v, u') dalpha(v, u')). Collective over the mesh. What travels:
/// see algebra::edge_softmax_plan.
template <class T, class Device>
edge_variable<T, Device> edge_softmax(edge_variable<T, Device> s) {
  return detail::record_like<detail::edge_softmax_node<T, Device>>(s, {s.recorded()}, false);
}

/// Y = E X: y(v, j) = the sum over u of e(v, u, head of j) x(u, j), with the columns of E as heads, side by
/// side in X and Y; adjoints: dX = E^T dY, de(v, u, h) = the sum over head h of dy(v, j) x(u, j). Collective
/// over the mesh. What travels: see edge_spmm_plan; backward transposed_edge_spmm_plan and sddmm_plan, where
/// these gradients are needed. Throws shape_error as they do.
template <class T, class Device>
variable<T, Device> spmm(edge_variable<T, Device> e, variable<T, Device> x) {
  return x.on().template record<detail::edge_spmm_node<T, Device>>(
      {x.on().mesh(), x.layout(), e.pattern().row_blocking(), x.col_blocking()}, {e.recorded(), x}, false);
}

/// e(v, u, h) = the sum over the columns j of head h of x(u, j) y(v, j), for the entries (v, u) of the
/// pattern; adjoints: dX = dE^T Y, dY = dE X. Collective over the mesh. What travels: see sddmm_plan;
/// backward as spmm. Throws shape_error as these do.
template <class T, class Device>
edge_variable<T, Device> sddmm(const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern,
                               variable<T, Device> x, variable<T, Device> y, local_index heads = 1) {
  return x.on().template record<detail::sddmm_node<T, Device>>(pattern.stored_for("sddmm"), heads, {x, y},
                                                               false, pattern);
}

}  // namespace partita::autodiff
