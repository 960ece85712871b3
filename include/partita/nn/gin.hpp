#pragma once
/// The graph isomorphism network: Xu, Hu, Leskovec, Jegelka (ICLR 2019), eq. 4.1, with a fixed epsilon.

#include "partita/nn/gcn.hpp"
#include "partita/nn/linear.hpp"

namespace partita {

/// Z = relu(S H W_a + b_a) W_b + b_b, S = A + (1 + epsilon) I (n x f_out; the inner width is f_out too).
///
/// Because the first dense layer follows the sum, S H W_a is one graph convolution. Every rank of the mesh
/// must call. What travels: see graph_linear; gradients are this rank's part until parameters::sum_gradients.
template <class T, class Place>
class gin_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  gin_convolution(const sparse<T, dynamic_layout, Place>& sum, parameters<T, Place>& set,
                  const std::string& name, global_index in, global_index out, layer_input input, double decay,
                  std::uint64_t seed, spmm_options options = {})
      : first_(sum, set, "a" + name, in, out, input, decay, seed, options),
        second_(set, "Wb" + name, "bb" + name, out, out, decay, seed),
        inner_(sum.mesh(), sum.row_blocking(), first_.out()),
        inner_gradient_(sum.mesh(), sum.row_blocking(), first_.out()) {}

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& pass = {}, bool relu = false) {
    first_.forward(h, inner_, pass, true);   // (n/P, f_out)
    second_.forward(inner_, z, pass, relu);  // (n/P, f_out)
  }
  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    second_.backward_through_relu(inner_, dz, inner_gradient_);  // (n/P, f_out)
    first_.backward(h, inner_gradient_, dh);
  }

  const blocking& out() const { return second_.out(); }
  volume predicted() const { return first_.predicted(); }

 private:
  gcn_convolution<T, Place> first_;
  linear<T, Place> second_;
  matrix inner_, inner_gradient_;
};

/// Convolutions with relu between; widths: f, hidden widths, classes. The first layer decays.
template <class T, class Place>
class gin : public stack<gin_convolution<T, Place>, activation::relu, T, Place> {
  using layer = gin_convolution<T, Place>;

 public:
  gin(const sparse<T, dynamic_layout, Place>& sum, const std::vector<global_index>& widths,
      const model_options& options)
      : stack<layer, activation::relu, T, Place>(
            sum.mesh(), sum.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              return std::make_unique<layer>(sum, set, std::to_string(l), widths[l], widths[l + 1],
                                             options.input_of(l), options.decay_of(l), options.seed,
                                             options.products);
            }) {}
};

}  // namespace partita
