// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Layer normalisation of the rows of an edge matrix, on variables.

#include <cmath>

#include "partita/autodiff/edges.hpp"

namespace partita::autodiff {

namespace detail {

/// x - part * (sum of the row).
template <class T>
struct edge_less_share {
  T part;
  constexpr T operator()(T x, T sum) const { return x - part * sum; }
};
/// 1 / sqrt(squares part + epsilon).
template <class T>
struct edge_inverse_deviation {
  T part, epsilon;
  constexpr T operator()(T squares) const { return T(1) / std::sqrt(squares * part + epsilon); }
};

/// Y = gamma * N, N = (X - mean) / sqrt(var + epsilon).
template <class T, class Device>
class edge_norm_node final : public node<T, Device> {
  using base = node<T, Device>;
  using edges = edge_matrix<T, Device>;

 public:
  edge_norm_node(std::vector<typename base::slot*> from, typename base::slot& to, double epsilon)
      : base(std::move(from), to), part_(T(1) / static_cast<T>(to.at.cols.size())), epsilon_(epsilon) {}

  void settle() override {
    const auto& pattern = *this->in().pattern;
    const local_index k = static_cast<local_index>(this->to().at.cols.size());
    normalized_.emplace(pattern, k);
    products_.emplace(pattern, k);
    inverse_.emplace(pattern, 1);
    sums_.emplace(pattern, 1);
  }
  void forward() override {
    const edges& x = this->in().value->edges();
    edges &n = *normalized_, &squares = *products_;
    row_sums(x, *sums_);
    with_rows(x, *sums_, n, edge_less_share<T>{part_});
    partita::zip(n, n, squares, std::multiplies<>{});
    row_sums(squares, *sums_);
    partita::transform(*sums_, *inverse_, edge_inverse_deviation<T>{part_, static_cast<T>(epsilon_)});
    with_rows(n, *inverse_, n, std::multiplies<>{});
    with_columns(n, this->in(1).value->whole(), this->to().value->own_edges());
  }
  void backward() override {
    const edges& dy = this->to().gradient->edges();
    edges &n = *normalized_, &products = *products_;
    this->in(1).give([&](auto& d) {
      partita::zip(dy, n, products, std::multiplies<>{});
      algebra::column_sums_part(products, d.whole());
    });
    this->in().give([&](auto& d) {  // of g = gamma dY: (g - mean(g) - N mean(g N)) / sqrt(var + epsilon)
      edges& dx = d.own_edges();
      with_columns(dy, this->in(1).value->whole(), dx);
      partita::zip(dx, n, products, std::multiplies<>{});
      row_sums(dx, *sums_);
      with_rows(dx, *sums_, dx, edge_less_share<T>{part_});
      row_sums(products, *sums_);
      with_rows(n, *sums_, products, std::multiplies<>{});
      partita::zip(dx, products, dx, edge_less_share<T>{part_});
      with_rows(dx, *inverse_, dx, std::multiplies<>{});
    });
  }
  traffic predicted_backward() const override {
    const auto& c = this->in(1);
    return c.needs_gradient ? algebra::predicted_part<T>(c.at.mesh, c.at.cols.size()) : traffic{};
  }
  bool keeps_output() const override { return false; }

 private:
  static void row_sums(const edges& x, edges& sums) {
    algebra::detail::for_entry_rows(
        [&](auto rows, auto to) { local::chunked::row_sums(x.mesh().queue(), rows, to.data); }, x, sums);
  }
  /// y = f(x, the number of its row in r); y may be x.
  template <class Function>
  static void with_rows(const edges& x, const edges& r, edges& y, Function f) {
    const auto& q = x.mesh().queue();
    algebra::detail::for_entry_rows(
        [&](auto from, auto values, auto to) {
          local::by_rows(
              q,
              [&](local_index, matrix_view<const T> in, matrix_view<const T> of_rows, matrix_view<T> out) {
                transform_indexed(q, algebra::detail::with_row_value<Function, T>{f, of_rows.data}, in, out);
              },
              local::reads(from), local::reads(values), local::writes(to));
        },
        x, r, y);
  }
  /// y = c x, c a number for each column.
  static void with_columns(const edges& x, const dense<T, replicated, Device>& c, edges& y) {
    const algebra::detail::with_column_value<std::multiplies<>, T> of_column{{}, c.local().data};
    algebra::detail::for_entry_rows(
        [&](auto from, auto to) { local::chunked::transform_indexed(x.mesh().queue(), of_column, from, to); },
        x, y);
  }

  T part_;
  double epsilon_;
  std::optional<edges> normalized_, products_, inverse_, sums_;
};

}  // namespace detail

/// Y = gamma * (E - mean) / sqrt(var + epsilon) + beta, with mean and biased variance of each edge's row
/// (entries x k; gamma and beta 1 x k, replicated). Local; on the tape, three more edge matrices of k columns
/// at most. Throws shape_error. Source: see layer_norm of a variable.
template <class T, class Device>
edge_variable<T, Device> layer_norm(edge_variable<T, Device> e, variable<T, Device> gamma,
                                    variable<T, Device> beta, double epsilon = 1e-5) {
  if (gamma.layout() != replicated || gamma.shape() != matrix_shape{1, e.columns()})
    base::throw_error<shape_error>({"layer_norm: ", e.columns(), " columns of edges need a gamma of 1 x ",
                                    e.columns(), ", replicated, not ", gamma.shape(), " with (",
                                    to_string(gamma.layout()), ")"});
  return add_row(
      beta, detail::record_like<detail::edge_norm_node<T, Device>>(e, {e.recorded(), gamma}, false, epsilon));
}

}  // namespace partita::autodiff
