#pragma once
/// What training asks of a model.

#include "partita/algebra/spmm.hpp"
#include "partita/nn/input.hpp"
#include "partita/nn/parameters.hpp"

namespace partita {

/// What is known about the input of a layer.
enum class layer_input : std::uint8_t {
  varying,      ///< needs a gradient
  no_gradient,  ///< changes from epoch to epoch (dropout), but nobody needs its gradient
  constant      ///< never changes: a product of it with the graph is computed once
};

/// How d loss / d alpha_uv = dY_v . X_u of an edge comes to the rank that owns v; `automatic` takes what
/// makes the busiest rank receive less.
enum class coefficient_gradient : std::uint8_t {
  automatic,
  rows,  ///< the rows of X that in-edges of own vertices name, each once, all columns
  edges  ///< sampled products where X and dY lie under the policy, and parts of the values of edges
};

/// Dropout of one forward: probability 0 when the model is evaluated.
struct dropout_pass {
  double probability = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;

  dropout_mask mask(std::uint64_t layer) const { return {probability, {seed, epoch, layer}}; }
};

/// What every model is made with.
struct model_options {
  std::uint64_t seed = 0;
  double weight_decay = 0;       ///< of the first layer's parameters
  double convolution_decay = 0;  ///< of the convolutions of gcnii
  bool constant_input = false;   ///< no dropout on the input, the same matrix in every epoch
  spmm_options products = {};
  coefficient_gradient coefficients = coefficient_gradient::automatic;  ///< of attention

  layer_input input_of(std::size_t layer) const {
    return layer > 0        ? layer_input::varying
           : constant_input ? layer_input::constant
                            : layer_input::no_gradient;
  }
  double decay_of(std::size_t layer) const { return layer == 0 ? weight_decay : 0; }
};

/// A network over one graph. All its members must be called by every rank of the mesh.
template <class T, class Place>
class model {
 public:
  using matrix = dense<T, vertex_rows, Place>;
  using input = input_features<T, Place>;

  model() = default;
  /// Layers point into it.
  model(const model&) = delete;
  model& operator=(const model&) = delete;
  virtual ~model() = default;

  /// The logits (n x classes). The input must live, unchanged, until backward.
  virtual const matrix& forward(input& x, const dropout_pass& pass) = 0;
  /// The gradient of every parameter, summed over the ranks, from that of the logits.
  virtual void backward(const matrix& logits_gradient) = 0;
  virtual partita::parameters<T, Place>& parameters() = 0;
  /// What this rank receives in one forward and backward of a steady epoch, in closed form.
  virtual volume predicted() const = 0;
};

}  // namespace partita
