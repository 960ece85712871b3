#pragma once
/// Z = A H W + b, by whichever order moves and computes less, forward and backward.

#include <optional>

#include "partita/algebra/spmm.hpp"
#include "partita/nn/activation.hpp"
#include "partita/nn/model.hpp"
#include "partita/nn/weight_product.hpp"

namespace partita {

/// Z = A (H W) + b or (A H) W + b (n x f_out, n x f_in, f_in x f_out, 1 x f_out), H and Z in vertex_rows; b
/// is left out where it is null.
///
/// The order is chosen by the width that travels in an epoch, then by operations: A (H W) propagates f_out
/// forward and f_out backward; (A H) W propagates f_in forward (nothing for a constant H) and, when H needs a
/// gradient, the smaller of f_in and f_out backward. Every rank of the mesh must call; what travels: those
/// propagations.
template <class T, class Place>
class graph_linear {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  graph_linear(const sparse<T, dynamic_layout, Place>& a, const blocking& in, const blocking& out,
               layer_input input, spmm_options options = {})
      : input_(input), aggregate_first_(prefers_aggregation(a, in.size(), out.size(), input)) {
    const bool back = input == layer_input::varying;
    const bool wide_back = aggregate_first_ && in.size() < out.size();
    const blocking& back_features = wide_back ? in : out;
    if (aggregate_first_) {
      aggregated_.emplace(a.mesh(), a.row_blocking(), in);
      forward_.emplace(a, vertex_rows, in, options);
    } else {
      product_.emplace(a.mesh(), a.col_blocking(), out);
      forward_.emplace(a, vertex_rows, out, options);
    }
    if (!aggregate_first_ || back) backward_.emplace(transposed(a), vertex_rows, back_features, options);
    if (!aggregate_first_ || back) gradient_.emplace(a.mesh(), a.col_blocking(), back_features);
    if (wide_back && back) wide_gradient_.emplace(a.mesh(), a.row_blocking(), in);
  }

  /// z from h, which is a matrix or sparse_features; `relu`: z = max(Z, 0).
  template <class Input>
  void forward(const Input& h, matrix_view<const T> w, matrix& z, const T* bias = nullptr,
               bool relu = false) {
    if (!aggregate_first_) {
      multiply_weight(h, w, *product_);  // (n/P, f_out)
      (*forward_)(*product_, z);         // (n/P, f_out)
      if (bias != nullptr) add_row(z.mesh().queue(), bias, z.local());
      if (relu) activation::relu::forward(z, {});
      return;
    }
    if (input_ != layer_input::constant || !aggregated_once_) aggregate(h);
    multiply_weight(*aggregated_, w, z, 0, bias, relu);  // (n/P, f_out)
  }

  /// This rank's part of dw; and of dbias, and dh, where they are given.
  template <class Input>
  void backward(const Input& h, matrix_view<const T> w, const matrix& dz, matrix_view<T> dw, matrix* dh,
                T* dbias = nullptr) {
    if (aggregate_first_)
      local_weight_gradient(*aggregated_, dz, dw, dbias);  // (f_in, f_out)
    else if (dbias != nullptr)
      column_sums(dz.mesh().queue(), dz.local(), dbias);
    if (wide_gradient_ && dh != nullptr) {
      multiply_transposed_weight(dz, w, *wide_gradient_);  // (n/P, f_in)
      return (*backward_)(*wide_gradient_, *dh);           // (n/P, f_in)
    }
    if (!backward_) return;
    (*backward_)(dz, *gradient_);                                       // (n/P, f_out)
    if (!aggregate_first_) local_weight_gradient(h, *gradient_, dw);    // (f_in, f_out)
    if (dh != nullptr) multiply_transposed_weight(*gradient_, w, *dh);  // (n/P, f_in)
  }

  bool aggregates_first() const { return aggregate_first_; }

  /// What this rank receives in one forward and backward of a steady epoch.
  volume predicted() const {
    const volume once =
        aggregate_first_ && input_ == layer_input::constant ? volume{} : forward_->predicted();
    return once + (backward_ ? backward_->predicted() : volume{});
  }

 private:
  static bool prefers_aggregation(const sparse<T, dynamic_layout, Place>& a, global_index in,
                                  global_index out, layer_input input) {
    const global_index first =
        (input == layer_input::constant ? 0 : in) + (input == layer_input::varying ? std::min(in, out) : 0);
    if (a.mesh().size() > 1) return first < 2 * out;
    return input == layer_input::varying && first < 2 * out;  // a dense A H would lose the zeros of H
  }

  void aggregate(const matrix& h) {
    (*forward_)(h, *aggregated_);  // (n/P, f_in)
    aggregated_once_ = true;
  }
  void aggregate(const sparse_features<T, Place>& h) {
    matrix whole(h.mesh(), h.row_blocking(), aggregated_->col_blocking());
    h.write_out(whole.local());
    aggregate(whole);
  }

  layer_input input_;
  bool aggregate_first_;
  bool aggregated_once_ = false;
  std::optional<spmm_plan<T, Place>> forward_, backward_;
  std::optional<matrix> product_, aggregated_, gradient_, wide_gradient_;
};

}  // namespace partita
