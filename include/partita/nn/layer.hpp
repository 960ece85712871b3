// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a layer is.

#include "partita/algebra/operand.hpp"
#include "partita/nn/parameters.hpp"

namespace partita::nn {

/// Names of the parameters of a layer with one weight and one bias.
struct weight_names {
  std::string weight = "W";
  std::string bias = "b";
};

/// One forward through a model: a step of training, with an epoch for its random choices, or an evaluation.
struct pass {
  bool training = false;
  std::uint64_t epoch = 0;
  bool relu = false;  ///< of a layer that fuses_relu(): Z = max(Z, 0), which is the next layer's
};

/// Z = f(H) with parameters W, and its gradients. Every rank of the mesh must construct a layer and call its
/// members. H is a matrix with whole rows on a rank, dense or sparse; Z and gradients are dense, rows cut as
/// H's. A layer keeps what its backward needs of the last forward. It is moved when it is put into a
/// sequential or a model, so it keeps no pointers into itself.
template <class T, class Device>
class layer {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  layer() = default;
  layer(layer&&) = default;
  virtual ~layer() = default;

  /// z = f(h). z is not h, and what it holds before is not to be read.
  virtual void forward(const operand<T, Device>& h, matrix& z, const pass& p) = 0;
  /// The gradients of the parameters, which are this rank's summands, and dh = d loss / d h unless it is
  /// null, from dz = d loss / d z and the h of the last forward. Gradients of parameters are zero before, and
  /// a layer may write or add to them; what dh holds before is not to be read. Sums over rows come from verbs
  /// that leave them this rank's, weight_gradient_part and column_sums_part.
  virtual void backward(const operand<T, Device>& h, const matrix& dz, matrix* dh) = 0;
  /// Columns of Z.
  virtual global_index width() const = 0;
  /// What this rank receives in one forward and backward of a steady epoch, in closed form.
  virtual traffic predicted() const { return {}; }
  /// Whether forward obeys pass::relu.
  virtual bool fuses_relu() const { return false; }
};

}  // namespace partita::nn
