// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Some consecutive layers of a model, and the matrices that pass between them and the others.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "partita/train/chunk_graph.hpp"
#include "partita/train/model_outline.hpp"

namespace partita::nn {

/// Where a stage is in its model: the layers [first, last) of an outline.
struct stage_place {
  model_outline outline;
  std::size_t first = 0, last = 0;

  bool is_first() const { return first == 0; }
  bool is_last() const { return last == outline.layers.size(); }
  /// The parameters of the stage, by number.
  interval parameters() const {
    return {static_cast<global_index>(outline.layers[first].first),
            static_cast<global_index>(outline.layers[last - 1].end)};
  }
  global_index input_width() const { return outline.layers[first].input_width; }
  global_index output_width() const {
    return is_last() ? outline.output_width : outline.layers[last].input_width;
  }
  /// Elements of the parameters of all layers before layer l.
  global_index weights_before(std::size_t l) const {
    global_index all = 0;
    for (std::size_t k = 0; k < l; ++k) all += outline.layers[k].weights;
    return all;
  }
  /// The skip connections into the stage, or out of it, by number.
  std::vector<std::size_t> skips_in() const { return is_first() ? std::vector<std::size_t>{} : skips(first); }
  std::vector<std::size_t> skips_out() const { return is_last() ? std::vector<std::size_t>{} : skips(last); }

 private:
  std::vector<std::size_t> skips(std::size_t l) const {
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < outline.skips.size(); ++k)
      if (outline.skips[k].passes(outline.layers[l].first)) found.push_back(k);
    return found;
  }
};

/// A stage's layers for one set of rows, with its inputs, outputs and their gradients. The rows at the
/// beginning of each rank's part are its own; the gradients of the others are 0.
template <class T, class Device>
class stage_layers {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using rounded = typename algebra::operand<T, Device>::rounded;
  /// What passes between two stages: a matrix and the skip connections, or their gradients.
  using boundary = std::vector<std::variant<matrix*, rounded*>>;
  using sent = std::vector<std::variant<const matrix*, const rounded*>>;

  /// H and dH (none in the first stage), Z and dZ, and for skip connections the values from earlier stages
  /// and the gradients from later ones. Where activations are stored as base::bfloat16, stored_h is there
  /// instead of h, and, but in the last stage, stored_z instead of z, which is computed in the memory of dz.
  struct matrices {
    std::optional<matrix> h, dh, z, dz;
    std::optional<rounded> stored_h, stored_z;
    std::deque<matrix> skips_in, skips_out_gradients;
  };

  /// `own`: the blocking of its own rows. `vertices`: the vertex of every row, which seeds its dropout.
  stage_layers(const mesh<Device>& m, const stage_place& place, sequential<T, Device> layers,
               std::vector<std::shared_ptr<skip_connection<T, Device>>> skips, matrices all,
               const blocking& own, std::optional<algebra::operand<T, Device>> input,
               const std::vector<global_index>& vertices)
      : in_(place.skips_in()),
        out_(place.skips_out()),
        layers_(std::move(layers)),
        skips_(std::move(skips)),
        all_(std::move(all)),
        input_(std::move(input)),
        vertices_(m.queue(), vertices.size()) {
    copy(m.queue(), std::span<const global_index>(vertices), vertices_.span());
    const interval local{0, own.block(vertex_rows.rows, m.at()).size()};
    const auto view = [&](matrix& x) { return part_of_rows(m, own, local, x); };
    own_z_.emplace(view(z()));
    gradients_in_.push_back(view(*all_.dz));
    for (matrix& x : all_.skips_out_gradients) gradients_in_.push_back(view(x));
    if (all_.dh) gradients_out_.push_back(view(*all_.dh));
    for (const std::size_t k : in_) gradients_out_.push_back(view(skips_[k]->gradient));
  }

  void forward(pass p) {
    p.vertices = vertices_.data();
    for (std::size_t k = 0; k < in_.size(); ++k) {
      skips_[in_[k]]->value = &all_.skips_in[k];
      fill(skips_[in_[k]]->gradient, T(0));
    }
    layers_.forward(input(), z(), p);
    if constexpr (is_storable) {
      if (!all_.stored_z) return;
      copy(z(), *all_.stored_z);
      layers_.read_output(*all_.stored_z);
    }
  }
  /// Parameter gradients are written or accumulated; they are zeroed before.
  void backward() {
    for (std::size_t k = 0; k < out_.size(); ++k) {
      matrix& sum = skips_[out_[k]]->gradient;
      zip(sum, all_.skips_out_gradients[k], sum, std::plus<>{});
    }
    layers_.backward(input(), *all_.dz, all_.dh ? &*all_.dh : nullptr);
  }

  /// What arrives before forward, and leaves after it: all rows.
  boundary forward_input() {
    boundary found;
    if (all_.h) found.push_back(&*all_.h);
    if (all_.stored_h) found.push_back(&*all_.stored_h);
    for (matrix& m : all_.skips_in) found.push_back(&m);
    return found;
  }
  sent forward_output() const {
    sent found;
    if (all_.z) found.push_back(&*all_.z);
    if (all_.stored_z) found.push_back(&*all_.stored_z);
    for (const std::size_t k : out_) found.push_back(skips_[k]->value);
    return found;
  }
  /// What arrives before backward, and leaves after it: its own rows.
  boundary backward_input() {
    if (all_.stored_z) fill(*all_.dz, T(0));
    return pointers<boundary>(gradients_in_);
  }
  sent backward_output() const { return pointers<sent>(gradients_out_); }

  /// Its own rows of Z, the logits in the last stage, and their gradient.
  matrix& logits() { return *own_z_; }
  matrix& logits_gradient() { return gradients_in_.front(); }
  /// The input of the last layer with parameters, all rows; null if that is the model's input.
  const matrix* hidden() {
    if (const matrix* const inside = layers_.hidden()) return inside;
    if (all_.stored_h) copy(input(), *all_.dh);
    return all_.stored_h ? &*all_.dh : all_.h ? &*all_.h : nullptr;
  }
  const algebra::operand<T, Device>& input() {
    if (input_) return *input_;
    if constexpr (is_storable)
      if (all_.stored_h) return input_.emplace(*all_.stored_h);
    return input_.emplace(*all_.h);
  }
  traffic predicted() const { return layers_.predicted(); }

 private:
  static constexpr bool is_storable = algebra::stored_as<base::bfloat16, T, Device>;

  template <class Passing>
  static Passing pointers(auto& list) {
    Passing found;
    for (auto& m : list) found.push_back(&m);
    return found;
  }
  /// Where forward computes Z.
  matrix& z() { return all_.z ? *all_.z : *all_.dz; }

  std::vector<std::size_t> in_, out_;
  sequential<T, Device> layers_;
  std::vector<std::shared_ptr<skip_connection<T, Device>>> skips_;
  matrices all_;
  std::optional<algebra::operand<T, Device>> input_;
  buffer<global_index, Device> vertices_;
  std::optional<matrix> own_z_;
  std::deque<matrix> gradients_in_, gradients_out_;  ///< views of own rows
};

}  // namespace partita::nn
