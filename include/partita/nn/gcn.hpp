#pragma once
/// The graph convolution of Kipf and Welling (ICLR 2017), eq. 2, and a network of them.

#include "partita/nn/graph_linear.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

/// Z = A H W + b (n x f_out, n x f_in, f_in x f_out, 1 x f_out), H and Z in vertex_rows.
///
/// Every rank of the mesh must call. What travels: see graph_linear; gradients are this rank's part until
/// parameters::sum_gradients.
template <class T, class Place>
class gcn_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  gcn_convolution(const sparse<T, dynamic_layout, Place>& a, parameters<T, Place>& set,
                  const std::string& name, global_index in, global_index out, layer_input input, double decay,
                  std::uint64_t seed, spmm_options options = {})
      : set_(&set),
        weight_(set.add("W" + name, {in, out}, decay)),
        bias_(set.add("b" + name, {1, out}, decay)),
        out_(blocking::even(out, a.mesh().shape(), nesting::cols)),
        product_(a, blocking::even(in, a.mesh().shape(), nesting::cols), out_, input, options) {
    glorot(set, weight_, seed);
  }

  /// `relu`: z = max(Z, 0).
  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}, bool relu = false) {
    product_.forward(h, set_->value(weight_), z, set_->value(bias_).data, relu);  // (n/P, f_out)
  }
  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    product_.backward(h, set_->value(weight_), dz, set_->gradient(weight_), dh, set_->gradient(bias_).data);
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return product_.predicted(); }

 private:
  parameters<T, Place>* set_;
  std::size_t weight_, bias_;
  blocking out_;
  graph_linear<T, Place> product_;
};

/// Convolutions with relu between; widths: f, hidden widths, classes. The first layer decays.
template <class T, class Place>
class gcn : public stack<gcn_convolution<T, Place>, activation::relu, T, Place> {
  using layer = gcn_convolution<T, Place>;

 public:
  gcn(const sparse<T, dynamic_layout, Place>& a, const std::vector<global_index>& widths,
      const model_options& options)
      : stack<layer, activation::relu, T, Place>(
            a.mesh(), a.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              return std::make_unique<layer>(a, set, std::to_string(l), widths[l], widths[l + 1],
                                             options.input_of(l), options.decay_of(l), options.seed,
                                             options.products);
            }) {}
};

}  // namespace partita
