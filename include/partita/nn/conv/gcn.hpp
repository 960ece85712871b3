// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph convolution of Kipf and Welling (ICLR 2017), eq. 2.

#include "partita/base/function.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = A H W + b (n x out, n x in, in x out, 1 x out).
///
/// Evaluated as A (H W) or (A H) W, whichever communicates less per epoch. A (H W) propagates `out` columns
/// forward and backward; (A H) W propagates `in` columns forward (once, for a constant H, unless it is sparse
/// and wide, since A H is dense) and, when H needs a gradient, the smaller of `in` and `out` backward. Under
/// model_options::sampled the first layer is evaluated as (A H) W, and on a reproducible mesh others are
/// where in < out, whatever block of a sample a rank has. What travels: these propagations; see spmm_plan.
template <class T, class Device>
class gcn_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  /// An empty bias name means no bias.
  gcn_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out,
           const builder<T, Device>& b, const weight_names& names = {})
      : input_(b.input()),
        rows_(a.row_blocking()),
        aggregate_first_(prefers_aggregation(a, in, out, input_, b.options())),
        narrow_in_(aggregate_first_ && (in < out || (b.options().sampled && input_ == layer_input::varying))),
        weight_(b.glorot(names.weight, {in, out})),
        bias_(names.bias.empty() ? nullptr : &b.filled(names.bias, {1, out})),
        product_(b.product(a, b.columns(aggregate_first_ ? in : out),
                           aggregate_first_ && input_ != layer_input::varying)),
        forward_(a.mesh(), aggregate_first_ ? a.row_blocking() : a.col_blocking(),
                 b.columns(aggregate_first_ ? in : out)) {
    if (aggregate_first_ && input_ != layer_input::varying) return;
    const blocking columns = b.columns(narrow_in_ ? in : out);
    transposed_product_ = b.transposed_product(a, columns);
    backward_.emplace(a.mesh(), narrow_in_ ? a.row_blocking() : a.col_blocking(), columns);
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    if (aggregate_first_) {
      aggregated_ = h.visit([&](auto& x) { return aggregated(x, h); });      // A H (n, in)
      return gemm(*aggregated_, weight_.value(), z, p.epilogue_of(bias()));  // (n, out)
    }
    gemm(h, weight_.value(), forward_);                   // H W (n, out)
    product_->apply(forward_, z, p.epilogue_of(bias()));  // (n, out)
  }

  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    if (aggregate_first_)
      algebra::weight_gradient_part(*aggregated_, dz, weight_.gradient(),
                                    bias_gradient());  // (A H)^T dZ (in, out)
    else if (bias_ != nullptr)
      algebra::column_sums_part(dz, bias_->gradient());  // (1, out)
    if (aggregate_first_ && dh == nullptr) return;
    if (!transposed_product_) throw error("gcn_conv was constructed for an input that needs no gradient");
    if (narrow_in_) {
      gemm(dz, transposed(weight_.value()), *backward_);  // dZ W^T (n, in)
      return (*transposed_product_)(*backward_, *dh);     // A^T (dZ W^T) (n, in)
    }
    (*transposed_product_)(dz, *backward_);  // A^T dZ (n, out)
    if (!aggregate_first_) algebra::weight_gradient_part(h, *backward_, weight_.gradient());  // H^T (A^T dZ)
    if (dh != nullptr) gemm(*backward_, transposed(weight_.value()), *dh);                    // (n, in)
  }

  blocking output_rows(const blocking&) const override { return rows_; }
  global_index width() const override { return weight_.shape().cols; }
  bool fuses_relu() const override { return true; }
  traffic predicted() const override {
    return predicted_forward() + (transposed_product_ ? transposed_product_->predicted() : traffic{});
  }
  traffic predicted_forward() const override {
    const bool once = aggregate_first_ && input_ == layer_input::constant;
    return once ? traffic{} : product_->predicted();
  }

 private:
  using weight = dense<T, replicated, Device>;

  static bool prefers_aggregation(const sparse<T, dynamic_layout, Device>& a, global_index in,
                                  global_index out, layer_input input, const model_options& options) {
    if (options.sampled && a.mesh().reproducible()) return input != layer_input::varying || in < out;
    if (options.sampled) return input != layer_input::varying || multiplies_less(a, in, out);
    constexpr global_index few = 64;  // columns of a sparse H whose product may be dense
    if (input == layer_input::constant && options.sparse_input && in > few) return false;
    const global_index first =
        (input == layer_input::constant ? 0 : in) + (input == layer_input::varying ? std::min(in, out) : 0);
    return first < 2 * out;
  }
  /// Whether (A H) W multiplies less than A (H W), forward and backward.
  static bool multiplies_less(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out) {
    const auto entries = static_cast<global_index>(a.local()->nonzeros);
    const auto [rows, cols] = a.shape();
    return 3 * rows * in * out + 2 * entries * in < 3 * cols * in * out + 2 * entries * out;
  }
  template <class X>
  algebra::operand<T, Device> aggregated(const X&, const algebra::operand<T, Device>& h) {
    if (!(h.constant() && aggregated_constant_)) (*product_)(written_out_(h), forward_);
    if (h.constant()) written_out_.release();
    aggregated_constant_ = h.constant();
    return forward_;
  }
  algebra::operand<T, Device> aggregated(algebra::column_slices<T, Device>& x,
                                         const algebra::operand<T, Device>&) {
    return x.aggregated();
  }
  const weight* bias() const { return bias_ == nullptr ? nullptr : &bias_->value(); }
  weight* bias_gradient() const { return bias_ == nullptr ? nullptr : &bias_->gradient(); }

  layer_input input_;
  blocking rows_;
  bool aggregate_first_;
  bool narrow_in_;  ///< backward propagates dZ W^T instead of dZ
  parameter<T, Device>& weight_;
  parameter<T, Device>* bias_;
  std::shared_ptr<graph_product<T, Device>> product_, transposed_product_;
  matrix forward_;                  ///< A H or H W
  std::optional<matrix> backward_;  ///< A^T dZ or dZ W^T
  algebra::dense_operand<T, Device> written_out_;
  std::optional<algebra::operand<T, Device>> aggregated_;
  bool aggregated_constant_ = false;
};

}  // namespace partita::nn
