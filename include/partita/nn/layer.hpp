// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface of a layer.

#include "partita/algebra/operand.hpp"
#include "partita/nn/builder.hpp"

namespace partita::nn {

/// Parameter names for a layer with one weight and one bias.
struct weight_names {
  std::string weight = "W";
  std::string bias = "b";
};

/// One forward pass: a training step, whose epoch seeds its random choices, or an evaluation.
struct pass {
  bool training = false;
  std::uint64_t epoch = 0;
  /// Fuse the next layer's Z = max(Z, 0), and a dropout behind; only for layers with fuses_relu().
  bool relu = false;
  dropout_mask drop = {};
  /// Where the rows of matrices are a selection of vertices: the vertex of each row, in the device's memory.
  const global_index* vertices = nullptr;

  /// The same pass, with what is fused into it, or nothing.
  pass fusing(bool relu_behind, const dropout_mask& drop_behind) const {
    return {training, epoch, relu_behind, drop_behind, vertices};
  }
  pass alone() const { return fusing(false, {}); }
  /// The epilogue of the last product of a layer.
  template <class T, class Device>
  epilogue<T, Device> epilogue_of(const dense<T, replicated, Device>* bias, T beta = 0) const {
    return {beta, bias, relu, drop};
  }
};

/// Z = f(H) with parameters W, and its gradients. Collective over the mesh: constructor and members. H has
/// whole rows on each rank, dense or sparse; Z and the gradients are dense. Z has the rows of H, or those of
/// output_rows: the rows of H are then the sources of the edges of a sampled block, and the first of them its
/// targets, the rows of Z. A
/// layer keeps what backward needs from the last forward. It is moved into a sequential or a model, so it
/// must not hold pointers into itself.
template <class T, class Device>
class layer {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  layer() = default;
  layer(layer&&) = default;
  virtual ~layer() = default;

  /// z = f(h). z must not alias h; its previous contents are undefined.
  virtual void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) = 0;
  /// The gradients of the parameters, as this rank's contributions, and dh = d loss / d h unless null, from
  /// dz = d loss / d z and the h of the last forward. Parameter gradients are zeroed before the call; a layer
  /// may write or accumulate. The previous contents of dh are undefined. For sums over rows use the local
  /// weight_gradient_part and column_sums_part.
  virtual void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) = 0;
  /// The rows of Z, for an H with these.
  virtual blocking output_rows(const blocking& h) const { return h; }
  /// Columns of Z.
  virtual global_index width() const = 0;
  /// What this rank receives in one forward and backward pass of a steady epoch, in closed form.
  virtual traffic predicted() const { return {}; }
  /// What it receives in one forward pass of them.
  virtual traffic predicted_forward() const { return {}; }
  /// Frees what only backward reads, where forward will be called before backward is.
  virtual void forget() {}
  /// What the layer's last parameters were applied to in the last forward, where that is not H itself; null
  /// where it is H. (n x w)
  virtual const matrix* hidden() const { return nullptr; }
  /// Whether forward honours pass::relu and pass::drop.
  virtual bool fuses_relu() const { return false; }
};

}  // namespace partita::nn
