// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The interface of a layer.

#include "partita/algebra/operand.hpp"
#include "partita/memory/captured.hpp"
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
  /// What epilogue_of fuses into the layer: Z = max(Z, 0), followed by a dropout.
  bool relu = false;
  dropout_mask drop = {};
  /// A layer that sets `fused` may fuse Z = dropout(elu(Z)), with the mask in `drop`; epilogue_of then fuses
  /// nothing.
  bool elu = false;
  /// If the rows of matrices are a selection of vertices: the vertex of each row, in device memory.
  const global_index* vertices = nullptr;
  /// In a recorded step, which is replayed: the source of numbers that differ from step to step, such as
  /// those derived from the epoch. Layers that repeat() use no others.
  memory::step_numbers* numbers = nullptr;
  /// Whether epilogue_of was called, and thus fused what was to be fused.
  mutable bool fused = false;

  /// The same pass, with a ReLU and dropout fused into it, or nothing.
  pass fusing(bool relu_behind, const dropout_mask& drop_behind) const {
    return {training, epoch, relu_behind, drop_behind, false, vertices, numbers};
  }
  pass alone() const { return fusing(false, {}); }
  /// The epilogue of the layer's last product, whose result is Z. A layer that calls this has the ReLU and
  /// dropout that follow it fused.
  template <class T, class Device>
  epilogue<T, Device> epilogue_of(const dense<T, replicated, Device>* bias, T beta = 0) const {
    if (elu) return {beta, bias, false, {}};
    fused = true;
    return {beta, bias, relu, drop};
  }
};

/// Z = f(H) with parameters W, and its gradients. Collective over the mesh: constructor and members. H has
/// whole rows on each rank, dense or sparse; Z and the gradients are dense. On a whole graph Z has H's
/// rows. On a sampled block H's rows are the source vertices; the first of them, the targets, are Z's rows.
/// A layer keeps what backward needs from the last forward. It is moved into a sequential or a model, so it
/// must not hold pointers into itself.
///
/// A layer with plans is constructed with layer(b), and makes its parameters and plans with here(), in any
/// order. They are recorded, with those of inner layers made with here(), and predictions are their sums.
template <class T, class Device>
class layer {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  layer() = default;
  explicit layer(const builder<T, Device>& b) : here_(b.layer()) {}
  layer(layer&&) = default;
  virtual ~layer() = default;

  /// z = f(h). z must not alias h; its previous contents are undefined.
  virtual void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) = 0;
  /// The gradients of the parameters, as this rank's contributions, and dh = d loss / d h unless null, from
  /// dz = d loss / d z and the h of the last forward. Parameter gradients are zeroed before the call, unless
  /// the layer writes_gradients; a layer may write or accumulate. The previous contents of dh are undefined.
  /// For sums over rows use the local weight_gradient_part and column_sums_part.
  virtual void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) = 0;
  /// Whether backward writes every element of the gradients of all of its parameters.
  virtual bool writes_gradients() const { return false; }
  /// Whether a training pass and its backward enqueue the same work in every step except for pass::numbers,
  /// and never wait, without far memory and on one rank: a device may then replay the step without calling
  /// the layer (memory::captured). State of a pass that an evaluation may change must be restored in
  /// pass::numbers->before_each.
  virtual bool repeats() const { return false; }
  /// Columns of Z.
  virtual global_index width() const = 0;
  /// Frees what only backward reads; forward will be called again before backward.
  virtual void forget() {}
  /// The input of the layer's last parameters in the last forward (n x w), or null if that is H itself.
  virtual const matrix* hidden() const { return nullptr; }

  /// The rows of Z, for an H with the given rows.
  blocking output_rows(const blocking& h) const { return here_ ? here_->plans()->rows().value_or(h) : h; }
  /// What this rank receives in one forward and backward pass of a steady epoch, in closed form.
  traffic predicted() const { return here_ ? here_->plans()->predicted(true) : traffic{}; }
  /// What this rank receives in one forward pass of a steady epoch.
  traffic predicted_forward() const { return here_ ? here_->plans()->predicted(false) : traffic{}; }

 protected:
  /// The builder of this layer. Throws error in a layer that was not constructed with layer(b).
  const builder<T, Device>& here() const {
    if (!here_)
      throw error("a layer that asks here() must construct its base with its builder b, as in nn::layer(b)");
    return *here_;
  }
  /// Whether backward computes dh. Throws error if it is to, but the input needed no gradient when the layer
  /// was constructed.
  bool wants(const matrix* dh) const {
    if (dh != nullptr && here().input() != layer_input::varying)
      throw error("this layer was constructed for an input that needs no gradient");
    return dh != nullptr;
  }
  /// For a layer that wraps another one, made before it: the record of that one.
  void share_record(const layer& inner) { here_ = inner.here_; }
  /// Records that `inner` is part of this layer, and no longer of another one. `again`: its forward runs
  /// twice.
  void record(const layer& inner, bool again = false) {
    if (inner.here_) recorded_plans::put(inner.here_->plans(), here().plans(), again);
  }

 private:
  std::optional<builder<T, Device>> here_;
};

}  // namespace partita::nn
