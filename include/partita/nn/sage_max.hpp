#pragma once
/// GraphSAGE with max aggregation: Hamilton, Ying, Leskovec (NeurIPS 2017), algorithm 1 with the aggregator
/// of eq. 3 without its dense layer.

#include "partita/algebra/max_aggregate.hpp"
#include "partita/nn/dense_input.hpp"
#include "partita/nn/stack.hpp"
#include "partita/nn/weight_product.hpp"

namespace partita {

/// Z = Y W_l + b + H W_r, Y the largest of every feature over in-neighbours (n x f_out, n x f_in, f_in x
/// f_out twice, 1 x f_out).
///
/// Every rank of the mesh must call. What travels: see max_aggregate, f_in wide: forward unless H is
/// constant, backward when H needs a gradient. Gradients are this rank's part until
/// parameters::sum_gradients.
template <class T, class Place>
class sage_max_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// `edges`: any matrix with the pattern; its values do not matter.
  sage_max_convolution(const sparse<T, dynamic_layout, Place>& edges, parameters<T, Place>& set,
                       const std::string& name, global_index in, global_index out, layer_input input,
                       double decay, std::uint64_t seed)
      : set_(&set),
        neighbours_(set.add("Wl" + name, {in, out}, decay)),
        bias_(set.add("b" + name, {1, out}, decay)),
        own_(set.add("Wr" + name, {in, out}, decay)),
        input_(input),
        out_(blocking::even(out, edges.mesh().shape(), nesting::cols)),
        maximum_(edges, in),
        largest_(edges.mesh(), edges.row_blocking(),
                 blocking::even(in, edges.mesh().shape(), nesting::cols)) {
    if (input == layer_input::varying)
      gradient_.emplace(edges.mesh(), largest_.row_blocking(), largest_.col_blocking());
    glorot(set, neighbours_, seed);
    glorot(set, own_, seed);
  }

  /// `relu`: z = max(Z, 0).
  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}, bool relu = false) {
    if (input_ != layer_input::constant || !aggregated_once_) maximum_.forward(written_out_(h), largest_);
    if (input_ == layer_input::constant) written_out_.release();
    aggregated_once_ = true;
    multiply_weight(largest_, set_->value(neighbours_), z);                      // (n/P, f_out)
    multiply_weight(h, set_->value(own_), z, 1, set_->value(bias_).data, relu);  // (n/P, f_out)
  }
  /// dh: null unless the input varies.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    local_weight_gradient(largest_, dz, set_->gradient(neighbours_), set_->gradient(bias_).data);
    local_weight_gradient(h, dz, set_->gradient(own_));  // (f_in, f_out)
    if (dh == nullptr) return;
    multiply_transposed_weight(dz, set_->value(neighbours_), *gradient_);  // (n/P, f_in)
    maximum_.backward(*gradient_, *dh);                                    // (n/P, f_in)
    multiply_transposed_weight(dz, set_->value(own_), *dh, T(1));          // (n/P, f_in)
  }

  const blocking& out() const { return out_; }
  volume predicted() const {
    return input_ == layer_input::varying       ? maximum_.predicted()
           : input_ == layer_input::no_gradient ? maximum_.predicted_forward()
                                                : volume{};
  }

 private:
  parameters<T, Place>* set_;
  std::size_t neighbours_, bias_, own_;
  layer_input input_;
  blocking out_;
  max_aggregate<T, Place> maximum_;
  matrix largest_;
  std::optional<matrix> gradient_;
  dense_input<T, Place> written_out_;
  bool aggregated_once_ = false;
};

/// Convolutions with relu between; widths: f, hidden widths, classes. The first layer decays.
template <class T, class Place>
class sage_max : public stack<sage_max_convolution<T, Place>, activation::relu, T, Place> {
  using layer = sage_max_convolution<T, Place>;

 public:
  sage_max(const sparse<T, dynamic_layout, Place>& edges, const std::vector<global_index>& widths,
           const model_options& options)
      : stack<layer, activation::relu, T, Place>(
            edges.mesh(), edges.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              return std::make_unique<layer>(edges, set, std::to_string(l), widths[l], widths[l + 1],
                                             options.input_of(l), options.decay_of(l), options.seed);
            }) {}
};

}  // namespace partita
