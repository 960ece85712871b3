// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention in the layout of a policy.

#include <deque>
#include <optional>
#include <utility>

#include "partita/algebra/attention/cost.hpp"
#include "partita/algebra/edge_scores_gradient.hpp"
#include "partita/algebra/in_edge_sddmm.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/algebra/sddmm.hpp"

namespace partita::algebra {

namespace detail {

/// attention in the policy's layout.
template <class T, class Device>
class tiled_attention final : public attention_way<T, Device> {
 public:
  using typename attention_way<T, Device>::matrix;

  /// `form`: rows, for one hop, or edges.
  tiled_attention(const sparse<T, dynamic_layout, Device>& a, const transfer::in_edges<T, Device>& rows,
                  const attention_shape& shape, spmm_options options, coefficient_gradient form)
      : features_(blocking::even(shape.columns(), a.mesh().shape(), nesting::cols)),
        product_(a, multiplied_layout(a, vertex_rows), features_, shape.values_of_edge(), options.rows),
        transposed_product_(transposed(a).stored_for("attention"), multiplied_layout(a, vertex_rows),
                            features_, shape.values_of_edge(), options.rows),
        scores_(a, rows, shape.scores(), product_.heads_here()),
        scores_gradient_(rows, shape.scores()),
        alpha_(a, product_.heads_here()),
        transposed_alpha_(transposed(a), product_.heads_here(), scores_gradient_.values_here()),
        own_gradient_(a.mesh().queue(),
                      rows.own_columns().size() * static_cast<std::size_t>(shape.values_of_edge())),
        change_(a.mesh(), a.col_blocking(), a.row_blocking(), features_, vertex_rows,
                multiplied_layout(a, vertex_rows)) {
    const auto add_block = [&](auto& to) {
      to.emplace_back(a.mesh(), multiplied_layout(a, vertex_rows), a.row_blocking(), features_);
    };
    for (int k = 1; k < shape.hops; ++k) add_block(between_);
    if (change_.travels() || shape.hops > 1)
      for (int i = 0; i < 2; ++i) add_block(gradients_);
    if (change_.travels()) {
      inner_x_.emplace(a.mesh(), multiplied_layout(a, vertex_rows), a.row_blocking(), features_);
      inner_y_.emplace(a.mesh(), multiplied_layout(a, vertex_rows), a.row_blocking(), features_);
    }
    if (form == coefficient_gradient::rows) {
      by_rows_.emplace(rows, shape.values_of_edge(), shape.width);
      return;
    }
    sddmm_plan<T, Device> sample(product_);
    const axis_set slices = sample.summed_axes();
    by_edges_.emplace(edge_gradient{std::move(sample), {a, rows, features_, shape.values_of_edge(), slices}});
  }

  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask) override {
    scores_.forward(scores, mask);
    if (!change_.travels()) return multiply(x, y);
    change_.to_inner(x.local(), inner_x_->local());
    multiply(*inner_x_, *inner_y_);
    change_.to_outer(inner_y_->local(), y.local());  // (n/P, w)
  }

  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) override {
    scores_.transpose();
    if (change_.travels()) {
      change_.to_inner(dy.local(), gradients_[0].local());
      multiply_backward(*inner_x_, gradients_[0], gradients_[hops() % 2]);
      change_.to_outer(gradients_[hops() % 2].local(), dx.local());  // (n/P, w)
    } else {
      multiply_backward(x, dy, dx);
    }
    std::span<T> gradient = own_gradient_.span();
    if (by_edges_)
      gradient = by_edges_->to_targets(alpha_.values(), gradient);
    else
      (*by_rows_)(dy, x, gradient);
    scores_gradient_(scores_, gradient, transposed_alpha_.storage(), dscores);  // (n/P, 2 heads)
  }

  coefficient_gradient form() const override {
    return by_edges_ ? coefficient_gradient::edges : coefficient_gradient::rows;
  }

  traffic predicted() const override {
    return predicted_products() + (by_edges_ ? by_edges_->predicted(hops()) : by_rows_->predicted());
  }
  traffic predicted_forward() const override {
    return scores_.predicted_forward() + change_.predicted() +
           static_cast<global_index>(hops()) * product_.predicted();
  }
  /// The coefficients that this rank computes for products, forward and backward.
  global_index coefficients() const override {
    const auto& shape = scores_.shape();
    return static_cast<global_index>(alpha_.values().size() + transposed_alpha_.values().size()) *
           (shape.averaged ? shape.heads : 1);
  }

 private:
  using block = dense<T, dynamic_layout, Device>;  ///< in the policy's layout

  /// The gradient of the coefficients: sampled products on tiles, then redistribution to the owners of the
  /// targets.
  struct edge_gradient {
    sddmm_plan<T, Device> sample;
    transfer::edge_redistribution<T, Device> to_targets;

    traffic predicted(std::size_t hops) const {
      return static_cast<global_index>(hops) * sample.predicted_parts() + to_targets.predicted();
    }
  };

  /// Everything except the gradient of the coefficients.
  traffic predicted_products() const {
    return scores_.predicted() + scores_gradient_.predicted() + 2 * change_.predicted() +
           static_cast<global_index>(hops()) * (product_.predicted() + transposed_product_.predicted());
  }

  std::size_t hops() const { return between_.size() + 1; }

  /// Z_K from Z_0, in the policy's layout.
  template <class X, class Y>
  void multiply(const X& x, Y& y) {
    const auto coefficients = scores_.by_targets(alpha_, hops() > 1);
    if (between_.empty()) return product_.compute(alpha_, coefficients, x, y);
    product_.compute(alpha_, coefficients, x, between_.front());
    for (std::size_t k = 1; k < between_.size(); ++k) product_(alpha_, between_[k - 1], between_[k]);
    product_(alpha_, between_.back(), y);
  }

  /// dZ_0 from dZ_K; replaces the coefficients on tiles by this rank's contributions to their gradient.
  template <class X, class Gradient, class ToGradient>
  void multiply_backward(const X& x, const Gradient& dy, ToGradient& dx) {
    const std::size_t last = between_.size();
    const auto step = [&](std::size_t k, const auto& z, const auto& now, auto& next) {  // dZ_k from dZ_(k+1)
      if (by_edges_) by_edges_->sample.parts(now, z, alpha_, k == last ? T(0) : T(1));
      if (k == last)
        transposed_product_.compute(transposed_alpha_, scores_.by_sources(transposed_alpha_, hops() > 1), now,
                                    next);
      else
        transposed_product_(transposed_alpha_, now, next);
    };
    if (last == 0) return step(0, x, dy, dx);
    step(last, between_.back(), dy, gradients_[1]);
    for (std::size_t k = last - 1; k > 0; --k)
      step(k, between_[k - 1], gradients_[(last - k) % 2], gradients_[(last - k + 1) % 2]);
    step(0, x, gradients_[last % 2], dx);
  }

  blocking features_;
  edge_spmm_plan<T, Device> product_, transposed_product_;
  edge_scores<T, Device> scores_;
  edge_scores_gradient<T, Device> scores_gradient_;
  edge_matrix<T, Device> alpha_;             ///< later the contributions to its gradient
  edge_matrix<T, Device> transposed_alpha_;  ///< later the coefficients of the in-edges of own vertices
  buffer<T, Device> own_gradient_;           ///< of the coefficients of these in-edges
  transfer::layout_change<T, Device> change_;
  std::deque<block> between_;  ///< Z_1 ... Z_(K-1)
  std::deque<block> gradients_;
  std::optional<block> inner_x_, inner_y_;  ///< Z_0 and Z_K, if redistributed
  std::optional<edge_gradient> by_edges_;
  std::optional<in_edge_sddmm_plan<T, Device>> by_rows_;
};

}  // namespace detail

}  // namespace partita::algebra
