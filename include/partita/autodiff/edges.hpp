// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of vertices on edges, rows of edges at vertices, and element-wise verbs, products and losses of edge
/// matrices, on variables.

#include "partita/algebra/edge_rows.hpp"
#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"

namespace partita::autodiff {

namespace detail {

/// e = the rows of X at one end of the edges, added to what is in its memory where a sum was taken over.
template <class T, class Device>
class gather_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  gather_node(std::vector<typename base::slot*> from, typename base::slot& to,
              const sparse<T, dynamic_layout, Device>& pattern, algebra::edge_end end)
      : base(std::move(from), to), there_(pattern, end, this->in().at.layout, this->in().at.cols) {
    if (this->in().needs_gradient) back_.emplace(pattern, end, this->in().at.layout, this->in().at.cols);
  }
  void forward() override { there_(this->in().value->any(), this->to().value->own_edges(), sums_); }
  void backward() override {
    this->in().give([&](auto& d) { (*back_)(this->to().gradient->edges(), d.any()); });
  }
  traffic predicted_forward() const override { return there_.predicted(); }
  traffic predicted_backward() const override { return back_ ? back_->predicted() : traffic{}; }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }
  bool take_sum() override { return sums_ ? false : (sums_ = true); }

 private:
  algebra::edge_gather_plan<T, Device> there_;
  std::optional<algebra::edge_scatter_plan<T, Device>> back_;
  bool sums_ = false;
};

/// X = the sums of rows of edges at one end.
template <class T, class Device>
class scatter_node final : public node<T, Device> {
  using base = node<T, Device>;

 public:
  scatter_node(std::vector<typename base::slot*> from, typename base::slot& to, algebra::edge_end end)
      : base(std::move(from), to), there_(*this->in().pattern, end, to.at.layout, to.at.cols) {
    if (this->in().needs_gradient) back_.emplace(*this->in().pattern, end, to.at.layout, to.at.cols);
  }
  void forward() override { there_(this->in().value->edges(), this->to().value->any()); }
  void backward() override {
    this->in().give([&](auto& d) { (*back_)(this->to().gradient->any(), d.own_edges()); });
  }
  traffic predicted_forward() const override { return there_.predicted(); }
  traffic predicted_backward() const override { return back_ ? back_->predicted() : traffic{}; }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }

 private:
  algebra::edge_scatter_plan<T, Device> there_;
  std::optional<algebra::edge_gather_plan<T, Device>> back_;
};

/// The first entries of E, copied.
template <class T, class Device>
class first_entries_node final : public node<T, Device> {
 public:
  using node<T, Device>::node;

  void forward() override { algebra::copy_first(this->in().value->edges(), this->to().value->own_edges()); }
  void backward() override {
    if (!this->in().needs_gradient) return;
    algebra::add_first(this->to().gradient->edges(), this->in().sum().own_edges());
  }
  bool keeps_output() const override { return false; }
  bool reads_again() const override { return false; }
};

/// Y = E W.
template <class T, class Device>
class edge_gemm_node final : public ended_node<T, Device> {
  using base = ended_node<T, Device>;

 public:
  using base::base;

  void forward() override {
    const epilogue<T, Device> end = this->end();
    partita::gemm(this->in().value->edges(), this->in(1).value->whole(), this->to().value->own_edges(),
                  end.bias, end.relu, end.beta);
  }
  void backward() override {
    auto &x = this->in(), &w = this->in(1);
    const auto& dy = this->to().gradient->edges();
    w.give([&](auto& d) { algebra::weight_gradient_part(x.value->edges(), dy, d.whole()); });
    if (!x.needs_gradient) return;
    partita::gemm(dy, partita::transposed(w.value->whole()), x.gradient->own_edges(),
                  x.written ? T(1) : T(0));
    x.written = true;
  }
  traffic predicted_backward() const override {
    const auto& w = this->in(1);
    const matrix_shape s = w.at.shape();
    return w.needs_gradient ? algebra::predicted_part_of_edges(*this->in().pattern, s.rows * s.cols)
                            : traffic{};
  }
  bool take_dropout(std::function<dropout_mask()>) override { return false; }
  bool take_sum() override { return this->has_activation() || this->sums_ ? false : (this->sums_ = true); };
};

template <class T, class Device>
void require_alike(const char* what, const edge_variable<T, Device>& x, const edge_variable<T, Device>& y) {
  if (x.pattern().local() == y.pattern().local() && x.columns() == y.columns()) return;
  base::throw_error<shape_error>({what, " needs edge variables of the same pattern and columns, not ",
                                  x.columns(), " columns over a pattern of ", x.pattern().shape(), " and ",
                                  y.columns(), " over one of ", y.pattern().shape()});
}

/// What a node of class Node makes of edge variables, with the pattern and the columns of x.
template <class Node, class T, class Device, class... More>
edge_variable<T, Device> record_like(edge_variable<T, Device> x, std::vector<variable<T, Device>> from,
                                     bool varies, More&&... more) {
  return x.on().template record<Node>(x.pattern(), x.columns(), from, varies, std::forward<More>(more)...);
}

template <class T, class Device>
edge_variable<T, Device> gather(const sparse<T, dynamic_layout, Device>& pattern, variable<T, Device> x,
                                algebra::edge_end end) {
  const local_index columns = base::to_local(x.shape().cols, "the columns of an edge matrix");
  return x.on().template record<gather_node<T, Device>>(pattern.stored_for("a gather"), columns, {x}, false,
                                                        pattern, end);
}
template <class T, class Device>
variable<T, Device> scatter(edge_variable<T, Device> e, layout l, algebra::edge_end end) {
  const auto& a = e.pattern();
  const auto& m = a.mesh();
  return e.on().template record<scatter_node<T, Device>>(
      {m, l, end == algebra::edge_end::source ? a.col_blocking() : a.row_blocking(),
       blocking::even(e.columns(), m.shape(), nesting::cols)},
      {e.recorded()}, false, end);
}

}  // namespace detail

/// e(v, u, :) = x(u, :), or x(v, :), for every entry (v, u) of the pattern, the edge u -> v; X in any layout.
/// Adjoint: the sums of the edges' rows at their sources, or targets. A gather is linear: gemm(gather(x), w)
/// is gather(gemm(x, w)), which multiplies each vertex once. Collective over the mesh. What travels: see
/// edge_gather_plan, and backward, for an X that needs a gradient, edge_scatter_plan.
template <class T, class Device>
edge_variable<T, Device> gather_sources(
    const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern, variable<T, Device> x) {
  return detail::gather(pattern, x, algebra::edge_end::source);
}
template <class T, class Device>
edge_variable<T, Device> gather_targets(
    const std::type_identity_t<sparse<T, dynamic_layout, Device>>& pattern, variable<T, Device> x) {
  return detail::gather(pattern, x, algebra::edge_end::target);
}

/// x(v, :) = the sum over u of e(v, u, :), or x(u, :) = the sum over v, over the entries (v, u) of e's
/// pattern, X in layout `l`. Adjoint: the gather. Collective over the mesh. What travels: see
/// edge_scatter_plan, and backward, for an e that needs a gradient, edge_gather_plan.
template <class T, class Device>
variable<T, Device> scatter_targets(edge_variable<T, Device> e, layout l = vertex_rows) {
  return detail::scatter(e, l, algebra::edge_end::target);
}
template <class T, class Device>
variable<T, Device> scatter_sources(edge_variable<T, Device> e, layout l = vertex_rows) {
  return detail::scatter(e, l, algebra::edge_end::source);
}

/// The entries of the first rows of e's pattern, those of `first`, or e itself where that is all of them: of
/// the edges of a block of sampled neighbours those of the next one, if neighbour_options::alike drew them.
/// Adjoint: de += dy in these entries. Local. Throws shape_error unless the mesh is of one rank, and where
/// `first` has more rows or entries.
template <class T, class Device>
edge_variable<T, Device> first_rows(edge_variable<T, Device> e,
                                    const std::type_identity_t<sparse<T, dynamic_layout, Device>>& first) {
  const auto& all = e.pattern();
  if (first.local() == all.local()) return e;
  if (all.mesh().size() > 1 || first.shape().rows > all.shape().rows ||
      first.local()->nonzeros > all.local()->nonzeros)
    base::throw_error<shape_error>({"a pattern of ", first.shape(), " is not the first rows of one of ",
                                    all.shape(), " on a mesh of one rank"});
  return e.on().template record<detail::first_entries_node<T, Device>>(first.stored_for("first_rows"),
                                                                       e.columns(), {e.recorded()}, false);
}

/// Y = E W (entries x b = entries x a times a x b), W replicated; adjoints: dE = dY W^T, dW = E^T dY. A bias
/// and relu that follow are computed in its pass. Local. Throws shape_error.
template <class T, class Device>
edge_variable<T, Device> gemm(edge_variable<T, Device> e, variable<T, Device> w) {
  if (w.layout() != replicated || w.shape().rows != e.columns())
    base::throw_error<shape_error>({"gemm: an edge variable of ", e.columns(), " columns times W of ",
                                    w.shape(), " with (", to_string(w.layout()),
                                    "); W is replicated and has a row for each column"});
  return e.on().template record<detail::edge_gemm_node<T, Device>>(
      e.pattern(), base::to_local(w.shape().cols, "the columns of an edge matrix"), {e.recorded(), w}, false);
}

/// The verbs of autodiff/elementwise.hpp of edge variables of one pattern.
template <class T, class Device, class Function>
edge_variable<T, Device> transform(edge_variable<T, Device> x, Function f) {
  return detail::record_like<detail::transform_node<T, Device, detail::whole_edges, Function>>(
      x, {x.recorded()}, false, f);
}
template <class T, class Device, class Function>
edge_variable<T, Device> zip(edge_variable<T, Device> x, edge_variable<T, Device> y, Function f) {
  detail::require_alike("zip", x, y);
  return detail::record_like<detail::zip_node<T, Device, detail::whole_edges, Function>>(
      x, {x.recorded(), y.recorded()}, false, f);
}
template <class T, class Device>
edge_variable<T, Device> operator+(edge_variable<T, Device> x, edge_variable<T, Device> y) {
  detail::require_alike("a sum", x, y);
  return detail::record_like<detail::sum_node<T, Device, detail::whole_edges>>(
      x, {x.recorded(), y.recorded()}, false, T(1));
}
template <class T, class Device>
edge_variable<T, Device> operator-(edge_variable<T, Device> x, edge_variable<T, Device> y) {
  detail::require_alike("a difference", x, y);
  return detail::record_like<detail::sum_node<T, Device, detail::whole_edges>>(
      x, {x.recorded(), y.recorded()}, false, T(-1));
}
template <class T, class Device>
edge_variable<T, Device> operator*(edge_variable<T, Device> x, edge_variable<T, Device> y) {
  return zip(x, y, std::multiplies<>{});
}
template <class T, class Device>
edge_variable<T, Device> operator*(double a, edge_variable<T, Device> x) {
  return detail::record_like<detail::scaled_node<T, Device, detail::whole_edges>>(x, {x.recorded()}, false,
                                                                                  static_cast<T>(a));
}
template <class T, class Device>
edge_variable<T, Device> relu(edge_variable<T, Device> x) {
  return detail::record_like<detail::relu_node<T, Device, detail::whole_edges>>(x, {x.recorded()}, false);
}
/// y(e, h) = x(e, h) + bias(0, h), bias replicated; adjoints: dx = dy, dbias = the column sums of dy. Local.
/// Throws shape_error.
template <class T, class Device>
edge_variable<T, Device> add_row(variable<T, Device> bias, edge_variable<T, Device> x) {
  if (bias.shape() != matrix_shape{1, x.columns()} || bias.layout() != replicated)
    base::throw_error<shape_error>({"add_row: a bias of ", bias.shape(), " with (", to_string(bias.layout()),
                                    ") for ", x.columns(), " columns of edges"});
  return detail::record_like<detail::add_row_node<T, Device, detail::whole_edges>>(x, {x.recorded(), bias},
                                                                                   false);
}
/// As dropout of a variable, with the choices of the edge u -> v and of the column, which depend on no order
/// of edges.
template <class T, class Device>
edge_variable<T, Device> dropout(edge_variable<T, Device> x, double rate, random_key key = {}) {
  detail::require_rate(rate);
  if (rate == 0) return x;
  return detail::record_like<detail::dropout_node<T, Device, detail::whole_edges>>(x, {x.recorded()}, true,
                                                                                   rate, key);
}

/// loss = f(e, de), as a loss of a variable.
template <class T, class Device, class Function>
scalar<T, Device> loss(edge_variable<T, Device> e, Function f, traffic sent = {}) {
  return e.on().template record_loss<detail::loss_of<T, Device, detail::whole_edges, Function>>(
      e.recorded(), std::move(f), sent);
}
/// The sum of all values of e. Collective over the mesh. What travels: see sum of an edge matrix.
template <class T, class Device>
scalar<T, Device> sum(edge_variable<T, Device> e) {
  return loss(
      e,
      [](const auto& x, auto& dx) {
        fill(dx, T(1));
        return static_cast<double>(partita::sum(x));
      },
      e.on().mesh().all_reduced(e.pattern().layout().used(), 1));
}

}  // namespace partita::autodiff
