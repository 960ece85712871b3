// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A sequence of layers.

#include <algorithm>
#include <concepts>
#include <string>
#include <tuple>
#include <vector>

#include "partita/base/function_reference.hpp"
#include "partita/nn/activation.hpp"

namespace partita::nn {

namespace detail {

/// Z = H, between two in-place layers.
template <class T, class Device>
class copy_layer final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  explicit copy_layer(global_index width) : width_(width) {}
  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass&) override { copy(h, z); }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (dh != nullptr) copy(dz, *dh);
  }
  global_index width() const override { return width_; }

 private:
  global_index width_;
};

}  // namespace detail

/// Z = l_n(... l_1(H)). Activations and dropout work in place; an activation and the dropout after it share
/// one pass, and relu and dropout are fused into the preceding layer if that supports it. Dropout as the
/// first layer keeps a sparse H sparse.
///
/// Under activation_checkpointing::always the outputs of layers are released as soon as the next layer has
/// read them, but for those of stored_outputs, and computed again before backward needs them, with the same
/// random choices; what backward has read is released, too. backward is then called once after each forward
/// of a training pass, and an evaluation stores no output but hidden().
///
///     sequential net(b);
///     net.add(dropout(.5, b)).add(gcn_conv(a, f, 16, b)).add(relu{}).add(gcn_conv(a, 16, classes, b));
///
/// What travels: that of the layers. forward and backward throw error under activation_checkpointing::always
/// for a model with a skip_connection, and backward where it is called without a forward of a training pass
/// before it.
template <class T, class Device>
class sequential final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  explicit sequential(const builder<T, Device>& b) : layer<T, Device>(b), builder_(b) {}

  /// Appends a layer, a dropout, or an activation: relu, elu, or a type with static forward(h, mask), which
  /// updates h in place, and backward(h, dh, mask), where h is the output of forward. Throws error for an
  /// activation without a preceding layer.
  template <class Layer>
  sequential& add(Layer l) {
    if constexpr (std::derived_from<Layer, layer<T, Device>>)
      push(std::make_unique<Layer>(std::move(l)));
    else
      add_in_place(std::make_unique<activation_layer<Layer, T, Device>>());
    return *this;
  }
  sequential& add(const dropout& d) {
    if (steps_.empty() && !input_dropout_)
      input_dropout_ = d;
    else if (steps_.empty() || steps_.back().after == nullptr || !steps_.back().after->absorb(d))
      add_in_place(std::make_unique<activation_layer<identity, T, Device>>(d));
    return *this;
  }

  /// Where a slice can begin or end: before each layer with parameters but the first. Activations, dropout
  /// and layers without parameters go with the layer before them.
  struct slice_start {
    std::size_t parameters;  ///< of the model, of all layers before
    global_index width;      ///< of their output
  };
  std::vector<slice_start> slice_starts() const {
    std::vector<slice_start> found;
    for (std::size_t l = 1; l < steps_.size(); ++l)
      if (const step& s = steps_[l]; s.first_parameter < s.end_parameter && s.first_parameter > 0)
        found.push_back({s.first_parameter, steps_[l - 1].work->width()});
    return found;
  }
  /// The layers from one start, or the beginning (0), to another, or the end, by the numbers of parameters
  /// before them; this sequence then no longer has them.
  sequential slice(std::size_t begin, std::size_t end) {
    sequential part(builder_);
    if (begin == 0) part.input_dropout_ = input_dropout_;
    for (step& s : steps_) {
      const std::size_t at = s.first_parameter < s.end_parameter ? s.first_parameter : s.end_parameter - 1;
      if (at >= begin && at < end) part.steps_.push_back(std::move(s));
    }
    std::erase_if(steps_, [](const step& s) { return s.work == nullptr; });
    part.record_steps();
    return part;
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    if (recomputes() && !builder_.skips().empty())
      throw error(
          "activation checkpointing cannot recompute the outputs of a model whose layers read the output of "
          "an earlier one");
    if (recomputes()) forget();
    pass_ = p;
    output_ = &z;
    read_output_.emplace(z);
    read(h);
    for (std::size_t l = 0; l < steps_.size(); ++l) {
      compute(l);
      if (recomputes()) release_behind(l);
    }
  }

  /// Instead of the output of the last forward, backward reads a copy of it, such as one of base::bfloat16.
  void read_output(const algebra::operand<T, Device>& z) { read_output_ = z; }

  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    backward(h, dz, dh, [](std::size_t) {});
  }
  /// The same, with done(k) after each layer: the gradients of the parameters from number k of the model on
  /// are complete.
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh,
                base::function_reference<void(std::size_t)> done) {
    if (recomputes() && (!pass_ || !pass_->training))
      throw error("recomputed outputs need a forward of a training pass before each backward");
    const matrix* d = &dz;
    for (std::size_t l = steps_.size(); l-- > 0;) {
      step& s = steps_[l];
      if (recomputes()) compute_again(l, h);
      const std::string name = name_of(l);
      const comm::span span(builder_.mesh().ledger(), name);
      const bool last = l + 1 == steps_.size();
      if (s.after != nullptr) {
        if (last) copy(dz, gradient_of(s, output_->row_blocking()));
        s.after->backward(last ? *read_output_ : s.out->read(), *s.gradient);
        d = &*s.gradient;
      }
      const algebra::operand<T, Device> in = input_of(l);
      matrix* const below = l == 0 ? dh : &gradient_of(steps_[l - 1], in.row_blocking());
      s.work->backward(in, *d, below);
      done(s.first_parameter);
      d = below;
      if (!recomputes()) continue;
      release(s);
      s.work->forget();
    }
    if (dh != nullptr && input_dropout_) identity::backward(*dh, *dh, input_mask_);
    if (recomputes()) forget();
  }

  bool writes_gradients() const override {
    return std::ranges::all_of(steps_, [](const step& s) {
      return s.first_parameter == s.end_parameter || s.work->writes_gradients();
    });
  }
  bool repeats() const override {
    return !recomputes() && std::ranges::all_of(steps_, [](const step& s) { return s.work->repeats(); });
  }
  global_index width() const override { return steps_.empty() ? 0 : steps_.back().work->width(); }
  /// The input of the last layer with parameters; null where that is the first layer.
  const matrix* hidden() const override {
    const std::size_t l = last_with_parameters();
    if (l == steps_.size()) return nullptr;
    if (const matrix* const inside = steps_[l].work->hidden()) return inside;
    if (l == 0) return nullptr;
    if (recomputes() && !steps_[l - 1].out)
      throw error("recomputed hidden outputs are available only after an evaluation");
    const step& before = steps_[l - 1];
    if (!before.out || !before.out->is_rounded()) return !before.out ? nullptr : &before.out->values();
    matrix& widened = gradient_of(before, before.out->read().row_blocking());
    copy(before.out->read(), widened);
    return &widened;
  }
  void forget() override {
    pass_.reset();
    dropped_ = {};
    for (step& s : steps_) release(s);
  }

 private:
  struct step {
    std::unique_ptr<layer<T, Device>> work;
    std::unique_ptr<in_place_layer<T, Device>> after;
    std::size_t first_parameter, end_parameter;          ///< the numbers of the layer's in the model
    std::optional<algebra::kept_matrix<T, Device>> out;  ///< Z of the step, allocated on demand
    mutable std::optional<matrix> gradient;  ///< d loss / d Z, likewise; before that, what a rounded Z was
  };

  void push(std::unique_ptr<layer<T, Device>> work) {
    const std::size_t before = steps_.empty() ? 0 : steps_.back().end_parameter;
    steps_.push_back({std::move(work), nullptr, before, builder_.parameters_made(), {}, {}});
    record_steps();
  }
  /// Records which of the steps run twice.
  void record_steps() {
    const stored_outputs stored(steps_.size());
    for (std::size_t l = 0; l < steps_.size(); ++l)
      this->record(*steps_[l].work, recomputes() && !stored.has(l));
  }

  void add_in_place(std::unique_ptr<in_place_layer<T, Device>> l) {
    if (steps_.empty()) throw error("an activation needs a preceding layer");
    if (steps_.back().after != nullptr) push(std::make_unique<detail::copy_layer<T, Device>>(width()));
    steps_.back().after = std::move(l);
  }
  static std::string name_of(std::size_t l) { return "layer " + std::to_string(l + 1); }
  bool recomputes() const { return builder_.options().recompute == activation_checkpointing::always; }
  /// Makes h, after the dropout in front, the input of the first step.
  void read(const algebra::operand<T, Device>& h) {
    input_ = input_dropout_ ? dropped(h, input_dropout_->mask(*pass_)) : h;
  }
  algebra::operand<T, Device> input_of(std::size_t l) const {
    return l == 0 ? *input_ : steps_[l - 1].out->read();
  }
  /// The output of a step from that of the one before.
  void compute(std::size_t l) {
    step& s = steps_[l];
    const std::string name = name_of(l);
    const comm::span span(builder_.mesh().ledger(), name);
    const algebra::operand<T, Device> in = input_of(l);
    const bool last = l + 1 == steps_.size();
    if (!last && !s.out)
      s.out.emplace(builder_.kept(s.work->output_rows(in.row_blocking()), s.work->width()));
    const bool rounds = !last && s.out->is_rounded();
    matrix* const wide = rounds ? &gradient_of(s, s.out->read().row_blocking()) : nullptr;
    matrix& out = last ? *output_ : s.out->place(wide);
    const auto fusing = s.after == nullptr ? std::nullopt : s.after->fused_into(*pass_);
    const pass offered = fusing.value_or(pass_->alone());
    s.work->forward(in, out, offered);
    if (fusing && offered.fused)
      s.after->skip(*pass_);
    else if (s.after != nullptr)
      s.after->forward(out, *pass_);
    if (!last) s.out->keep(out);
    if (rounds && recomputes()) s.gradient.reset();
  }
  /// Releases what forward has read for step l and backward does not read as it is.
  void release_behind(std::size_t l) {
    const stored_outputs stored(steps_.size());
    const std::size_t hidden = last_with_parameters();
    const auto keeps = [&](std::size_t k) { return pass_->training ? stored.has(k) : k + 1 == hidden; };
    if (l == 0 && !(pass_->training && stored.has(0))) dropped_ = {};
    if (l > 0 && !keeps(l - 1)) steps_[l - 1].out.reset();
    if (pass_->training ? !stored.has(l) : l != hidden) steps_[l].work->forget();
  }
  /// Before backward of step l: its output and those computed again with it, unless they are there.
  void compute_again(std::size_t l, const algebra::operand<T, Device>& h) {
    const std::size_t first = stored_outputs(steps_.size()).begin(l);
    if (l + 1 == steps_.size() || steps_[first].out) return;
    if (first == 0) read(h);
    for (std::size_t k = first; k < l; ++k) compute(k);
  }
  void release(step& s) {
    s.gradient.reset();
    s.out.reset();
  }
  /// The last step with parameters; their number if there is none.
  std::size_t last_with_parameters() const {
    for (std::size_t l = steps_.size(); l-- > 0;)
      if (steps_[l].first_parameter != steps_[l].end_parameter) return l;
    return steps_.size();
  }
  matrix& gradient_of(const step& s, const blocking& rows) const {
    if (!s.gradient) s.gradient.emplace(builder_.rows(rows, s.work->width()));
    return *s.gradient;
  }
  algebra::operand<T, Device> dropped(const algebra::operand<T, Device>& h, const dropout_mask& mask) {
    input_mask_ = mask;
    if (mask.probability == 0) return h;
    return h.visit([&](const auto& x) { return dropped_of(h, x, mask); });
  }
  template <class S>
  algebra::operand<T, Device> dropped_of(const algebra::operand<T, Device>&,
                                         const dense<S, vertex_rows, Device>& x, const dropout_mask& mask) {
    auto& y = std::get<std::optional<dense<S, vertex_rows, Device>>>(dropped_);
    if (!y) y.emplace(x.mesh(), x.row_blocking(), x.col_blocking());
    partita::dropout(x, *y, mask);
    return *y;
  }
  algebra::operand<T, Device> dropped_of(const algebra::operand<T, Device>& h,
                                         const sparse_rows<T, Device>& x, const dropout_mask& mask) {
    if (!sparse_dropped_) sparse_dropped_.emplace(x.like());
    partita::dropout(x, *sparse_dropped_, mask);
    return h.like(*sparse_dropped_);
  }

  algebra::operand<T, Device> dropped_of(const algebra::operand<T, Device>&,
                                         const algebra::column_slices<T, Device>& x,
                                         const dropout_mask& mask) {
    dropped_slices_.emplace(x.after_dropout(mask));
    return *dropped_slices_;
  }

  builder<T, Device> builder_;
  std::vector<step> steps_;
  std::optional<dropout> input_dropout_;
  dropout_mask input_mask_;
  std::tuple<std::optional<matrix>, std::optional<typename algebra::operand<T, Device>::rounded>> dropped_;
  std::optional<sparse_rows<T, Device>> sparse_dropped_;
  std::optional<algebra::column_slices<T, Device>> dropped_slices_;
  std::optional<algebra::operand<T, Device>> input_, read_output_;
  std::optional<pass> pass_;
  matrix* output_ = nullptr;
};

}  // namespace partita::nn
