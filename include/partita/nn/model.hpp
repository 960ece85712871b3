// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A model as used in training: layers and their parameters.

#include "partita/nn/sequential.hpp"

namespace partita::nn {

/// A layer stack and the parameters it was constructed with. Collective over the mesh: all members.
template <class T, class Device>
class model {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// `net`: a layer, such as a sequential; `b`: the builder its layers were constructed with.
  template <class Layer>
  model(const builder<T, Device>& b, Layer net)
      : parameters_(b.parameters()),
        net_(std::make_unique<Layer>(std::move(net))),
        logits_(b.rows(net_->output_rows(b.row_blocking()), net_->width())) {}

  /// The logits (n x classes). x must stay alive and unchanged until backward.
  const matrix& forward(const algebra::operand<T, Device>& x, const pass& p) {
    x_ = x;
    net_->forward(x, logits_, p);
    return logits_;
  }
  /// The gradient of every parameter, summed over the ranks, from that of the logits; in a sequence those of
  /// a layer travel while the layers before it go backward. In input_gradient, unless null, that of x, for
  /// layers constructed under model_options::learned_input. Throws error before the first forward.
  void backward(const matrix& logits_gradient, matrix* input_gradient = nullptr);

  /// The input of the last layer with parameters in the last forward, A^K X in sgc (n x w); null where that
  /// is the model's own input. Valid until the next forward; under activation_checkpointing::always there
  /// after an evaluation only, else it throws error.
  const matrix* hidden() const { return net_->hidden(); }

  /// The layers, to be taken from the model. Throws error unless they are a sequence.
  sequential<T, Device>& layers() {
    auto* const sequence = dynamic_cast<sequential<T, Device>*>(net_.get());
    if (sequence == nullptr) throw error("this model is a single layer, not a sequence of layers");
    return *sequence;
  }

  nn::parameters<T, Device>& parameters() { return *parameters_; }
  const blocking& row_blocking() const { return logits_.row_blocking(); }
  /// Columns of the logits.
  global_index width() const { return net_->width(); }
  /// See layer::repeats. Local.
  bool repeats() const { return net_->repeats(); }
  /// What this rank receives in one forward and backward pass of a steady epoch, in closed form.
  traffic predicted() const { return net_->predicted() + parameters_->predicted(); }

 private:
  std::shared_ptr<nn::parameters<T, Device>> parameters_;
  std::unique_ptr<layer<T, Device>> net_;
  matrix logits_;
  std::optional<algebra::operand<T, Device>> x_;
};

template <class T, class Device>
void model<T, Device>::backward(const matrix& logits_gradient, matrix* input_gradient) {
  if (!x_) throw error("backward needs a preceding forward pass of this model");
  if (parameters_->mesh().size() > 1 || !net_->writes_gradients()) fill(parameters_->gradients(), 0);
  if (auto* const sequence = dynamic_cast<sequential<T, Device>*>(net_.get()))
    sequence->backward(*x_, logits_gradient, input_gradient,
                       [&](std::size_t first) { parameters_->start_sums(first); });
  else
    net_->backward(*x_, logits_gradient, input_gradient);
  parameters_->sum_gradients();
}

/// Dropout of the input, then layers of width widths[1], widths[2], ... with `Activation` and dropout in
/// between; make(l, in, out, builder) constructs layer l. Weight decay applies to the first layer's
/// parameters.
template <class Activation, class T, class Device, class Make>
sequential<T, Device> chain(const builder<T, Device>& b, const std::vector<global_index>& widths, Make make) {
  const model_options& options = b.options();
  sequential<T, Device> net(b);
  net.add(dropout(options.dropout, b));
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    if (l > 0) net.add(Activation{}).add(dropout(options.dropout, b));
    net.add(make(l, widths[l], widths[l + 1], b.decaying(l == 0 ? options.weight_decay : 0)));
  }
  return net;
}

/// The sparse matrix that each layer multiplies with: one for all layers on a whole graph, or the block of
/// each layer, whose rows are the columns of the next, on sampled neighbours.
template <class T, class Device>
class layer_matrices {
 public:
  using matrix = sparse<T, dynamic_layout, Device>;

  layer_matrices(matrix of_all) : matrices_{std::move(of_all)} {}
  /// Throws shape_error for no blocks.
  explicit layer_matrices(std::vector<matrix> blocks) : matrices_(std::move(blocks)) {
    if (matrices_.empty()) throw shape_error("a model needs a sparse matrix to multiply with");
  }

  /// That of layer l, from 0. Throws shape_error where there are fewer blocks.
  const matrix& operator[](std::size_t l) const {
    if (matrices_.size() > 1 && l >= matrices_.size())
      base::throw_error<shape_error>({"layer ", l, " has no block: there are ", matrices_.size()});
    return matrices_.size() == 1 ? matrices_[0] : matrices_[l];
  }

 private:
  std::vector<matrix> matrices_;
};

/// Graph convolutions with relu in between; widths: f, hidden widths, classes. `b`: for the rows of the
/// first layer's input.
template <template <class, class> class Convolution, class T, class Device>
model<T, Device> convolutions(const layer_matrices<T, Device>& graph, const std::vector<global_index>& widths,
                              const builder<T, Device>& b) {
  return model<T, Device>(b, chain<relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
                            return Convolution<T, Device>(graph[l], in, out, with);
                          }));
}
/// As above, over one graph, with parameters of its own.
template <template <class, class> class Convolution, class T, class Device>
model<T, Device> convolutions(const sparse<T, dynamic_layout, Device>& a,
                              const std::vector<global_index>& widths, const model_options& options) {
  return convolutions<Convolution, T, Device>(layer_matrices<T, Device>(a), widths,
                                              builder<T, Device>(a, options));
}

}  // namespace partita::nn
