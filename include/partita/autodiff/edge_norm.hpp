// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Layer normalisation of the rows of an edge matrix, on variables.

#include "partita/algebra/edge_broadcasts.hpp"
#include "partita/autodiff/broadcasts.hpp"
#include "partita/autodiff/edges.hpp"

namespace partita::autodiff {

namespace detail {

/// Y = gamma * N, N = (X - mean) / sqrt(var + epsilon).
template <class T, class Device>
class edge_norm_node final : public node<T, Device> {
  using base = node<T, Device>;
  using edges = edge_matrix<T, Device>;

 public:
  edge_norm_node(std::vector<typename base::slot*> from, typename base::slot& to, double epsilon)
      : base(std::move(from), to), part_(1 / static_cast<double>(to.at.cols.size())), epsilon_(epsilon) {}

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
    partita::row_sums(x, *sums_);
    partita::transform_rows(x, *sums_, n, less_share{part_});
    partita::zip(n, n, squares, std::multiplies<>{});
    partita::row_sums(squares, *sums_);
    partita::transform(*sums_, *inverse_, inverse_deviation_of{part_, epsilon_});
    partita::transform_rows(n, *inverse_, n, std::multiplies<>{});
    partita::transform_columns(n, this->in(1).value->whole(), this->to().value->own_edges(),
                               std::multiplies<>{});
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
      partita::transform_columns(dy, this->in(1).value->whole(), dx, std::multiplies<>{});
      partita::zip(dx, n, products, std::multiplies<>{});
      partita::row_sums(dx, *sums_);
      partita::transform_rows(dx, *sums_, dx, less_share{part_});
      partita::row_sums(products, *sums_);
      partita::transform_rows(n, *sums_, products, std::multiplies<>{});
      partita::zip(dx, products, dx, less_share{part_});
      partita::transform_rows(dx, *inverse_, dx, std::multiplies<>{});
    });
  }
  traffic predicted_backward() const override {
    const auto& c = this->in(1);
    if (!c.needs_gradient) return {};
    return algebra::predicted_part_of_edges(*this->in().pattern, c.at.cols.size());
  }
  bool keeps_output() const override { return false; }

 private:
  double part_, epsilon_;
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
