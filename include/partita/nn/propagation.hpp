// SPDX-License-Identifier: Apache-2.0
#pragma once
/// K consecutive products in the policy's layout, with one redistribution in and one out, independent of K.

#include <deque>
#include <functional>

#include "partita/algebra/chunked_hops.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z_k = (1 - alpha) A Z_(k-1) + alpha Z_0, k = 1..K, Z_0 = H; Z = Z_K (all n x f). Personalised PageRank for
/// alpha > 0, A^K H for alpha = 0.
///
/// What travels in each direction: see chunked_hops, with model_options::split_pieces. Sources: Klicpera et
/// al. (ICLR 2019), eq. 4; decoupled training: NeutronTP (VLDB 2025), section 4.1.
template <class T, class Device>
class propagation final : public layer<T, Device> {
  using hop_plan = algebra::chunked_hops<T, Device>;

 public:
  using typename layer<T, Device>::matrix;

  propagation(const sparse<T, dynamic_layout, Device>& a, global_index width, int hops, double alpha,
              const builder<T, Device>& b, plan_uses uses = {})
      : layer<T, Device>(b),
        inner_(algebra::multiplied_layout(a, vertex_rows)),
        features_(b.columns(width)),
        forward_(hops_of(a, hops, {uses.forward, 0})),
        backward_(hops_of(transposed(a), hops, {0, uses.backward})),
        hops_(hops),
        keep_(static_cast<T>(1 - alpha)),
        teleport_(static_cast<T>(alpha)) {
    for (int i = 0; i < 3; ++i) states_.emplace_back(a.mesh(), inner_, a.col_blocking(), features_);
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& = {}) override {
    const matrix& x = dense_input_(h);
    state& first = states_[0];
    const state* now = &first;
    forward_->begin(x, first);
    for (int k = 0; k < hops_; ++k) {
      state& next = states_[static_cast<std::size_t>(1 + k % 2)];
      (*forward_)(k, x, first, *now, {keep_, teleport_}, first, next, z);  // (n, f)
      now = &next;
    }
    forward_->end(*now, z);
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (dh == nullptr) return;
    auto &sum = states_[0], *now = &states_[1], *next = &states_[2];
    backward_->begin(dz, *now);
    fill(sum, T(0));
    const auto add = [&](const state& part, T factor) {
      if (factor != 0) zip(sum, part, sum, base::linear_combination<T>{1, factor});
    };
    for (int k = 0; k < hops_; ++k) {
      if (k > 0) add(*now, teleport_);
      const T adds = k + 1 == hops_ && backward_->leaves_in_product() ? T(1) : T(0);
      (*backward_)(k, dz, *now, *now, {keep_, adds}, sum, *next, *dh);  // (n, f)
      if (k == 0) add(*now, teleport_);
      std::swap(now, next);
    }
    if (backward_->leaves_in_product()) return;
    zip(sum, *now, sum, std::plus<>{});
    backward_->end(sum, *dh);
  }

  bool repeats() const override { return true; }
  global_index width() const override { return features_.size(); }

 private:
  using state = typename hop_plan::state;

  std::shared_ptr<hop_plan> hops_of(const sparse<T, dynamic_layout, Device>& a, int hops,
                                    plan_uses uses) const {
    const model_options& options = this->here().options();
    return this->here().template plan<hop_plan>(uses, a, inner_, features_, hops, options.split_pieces,
                                                options.products);
  }

  layout inner_;
  blocking features_;
  std::shared_ptr<hop_plan> forward_, backward_;
  int hops_;
  T keep_, teleport_;
  std::deque<state> states_;  ///< three, each (n, f), in the policy's layout
  algebra::dense_operand<T, Device> dense_input_;
};

}  // namespace partita::nn
