#pragma once
/// GraphSAGE with mean aggregation: Hamilton, Ying, Leskovec (NeurIPS 2017), algorithm 1.

#include "partita/nn/graph_linear.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

/// Z = M H W_l + b + H W_r, M the mean over in-neighbours (n x f_out, n x f_in, f_in x f_out twice, 1 x
/// f_out).
///
/// Every rank of the mesh must call. What travels: see graph_linear, for M H W_l; gradients are this rank's
/// part until parameters::sum_gradients.
template <class T, class Place>
class sage_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  sage_convolution(const sparse<T, dynamic_layout, Place>& mean, parameters<T, Place>& set,
                   const std::string& name, global_index in, global_index out, layer_input input,
                   double decay, std::uint64_t seed, spmm_options options = {})
      : set_(&set),
        neighbours_(set.add("Wl" + name, {in, out}, decay)),
        bias_(set.add("b" + name, {1, out}, decay)),
        own_(set.add("Wr" + name, {in, out}, decay)),
        out_(blocking::even(out, mean.mesh().shape(), nesting::cols)),
        product_(mean, blocking::even(in, mean.mesh().shape(), nesting::cols), out_, input, options) {
    glorot(set, neighbours_, seed);
    glorot(set, own_, seed);
  }

  /// `relu`: z = max(Z, 0).
  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}, bool relu = false) {
    product_.forward(h, set_->value(neighbours_), z);                            // (n/P, f_out)
    multiply_weight(h, set_->value(own_), z, 1, set_->value(bias_).data, relu);  // (n/P, f_out)
  }
  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    product_.backward(h, set_->value(neighbours_), dz, set_->gradient(neighbours_), dh);
    local_weight_gradient(h, dz, set_->gradient(own_), set_->gradient(bias_).data);   // (f_in, f_out)
    if (dh != nullptr) multiply_transposed_weight(dz, set_->value(own_), *dh, T(1));  // (n/P, f_in)
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return product_.predicted(); }

 private:
  parameters<T, Place>* set_;
  std::size_t neighbours_, bias_, own_;
  blocking out_;
  graph_linear<T, Place> product_;
};

/// Convolutions with relu between; widths: f, hidden widths, classes. The first layer decays.
template <class T, class Place>
class sage : public stack<sage_convolution<T, Place>, activation::relu, T, Place> {
  using layer = sage_convolution<T, Place>;

 public:
  sage(const sparse<T, dynamic_layout, Place>& mean, const std::vector<global_index>& widths,
       const model_options& options)
      : stack<layer, activation::relu, T, Place>(
            mean.mesh(), mean.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              return std::make_unique<layer>(mean, set, std::to_string(l), widths[l], widths[l + 1],
                                             options.input_of(l), options.decay_of(l), options.seed,
                                             options.products);
            }) {}
};

}  // namespace partita
