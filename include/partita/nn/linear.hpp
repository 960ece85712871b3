#pragma once
/// Z = H W + b, the dense layer.

#include "partita/nn/initialization.hpp"
#include "partita/nn/model.hpp"
#include "partita/nn/weight_product.hpp"

namespace partita {

/// Z = H W + b (n x f_out, n x f_in, f_in x f_out, 1 x f_out), H and Z in vertex_rows. Nothing travels;
/// gradients are this rank's part until parameters::sum_gradients.
template <class T, class Place>
class linear {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// Parameters `weight` and `bias`, Glorot and zero.
  linear(parameters<T, Place>& set, const std::string& weight, const std::string& bias, global_index in,
         global_index out, double decay, std::uint64_t seed)
      : set_(&set),
        weight_(set.add(weight, {in, out}, decay)),
        bias_(set.add(bias, {1, out}, decay)),
        out_(blocking::even(out, set.mesh().shape(), nesting::cols)) {
    glorot(set, weight_, seed);
  }

  /// `relu`: z = max(Z, 0).
  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}, bool relu = false) {
    multiply_weight(h, set_->value(weight_), z, 0, set_->value(bias_).data, relu);  // (n/P, f_out)
  }
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    local_weight_gradient(h, dz, set_->gradient(weight_), set_->gradient(bias_).data);  // (f_in, f_out)
    if (dh != nullptr) multiply_transposed_weight(dz, set_->value(weight_), *dh);       // (n/P, f_in)
  }

  /// backward for H = max(Y, 0), down to Y.
  void backward_through_relu(const matrix& h, const matrix& dz, matrix& dy) {
    backward(h, dz, nullptr);
    relu_gradient(set_->mesh().queue(), dz.local(), set_->value(weight_), h.local(),
                  dy.local());  // (n/P, f_in)
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return {}; }

 private:
  parameters<T, Place>* set_;
  std::size_t weight_, bias_;
  blocking out_;
};

}  // namespace partita
