// SPDX-License-Identifier: Apache-2.0
#pragma once
/// K consecutive products in the policy's layout, with one redistribution in and one out, independent of K.

#include <deque>
#include <functional>

#include "partita/base/function.hpp"
#include "partita/nn/layer.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita::nn {

/// Z_k = (1 - alpha) A Z_(k-1) + alpha Z_0, k = 1..K, Z_0 = H; Z = Z_K (all n x f). Personalised PageRank for
/// alpha > 0, A^K H for alpha = 0.
///
/// What travels in each direction: redistribution of Z_0 to the policy's layout and of the result back, and
/// the traffic of K products (none under feature_column). Sources: Klicpera et al. (ICLR 2019), eq. 4;
/// decoupled training: NeutronTP (VLDB 2025), section 4.1.
template <class T, class Device>
class propagation final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  propagation(const sparse<T, dynamic_layout, Device>& a, global_index width, int hops, double alpha,
              const builder<T, Device>& b)
      : features_(b.columns(width)),
        inner_(multiplied_layout(a, vertex_rows)),
        forward_(a, inner_, features_, b.options().products),
        backward_(transposed(a), inner_, features_, b.options().products),
        to_policy_(a.mesh(), a.col_blocking(), features_, vertex_rows, inner_),
        from_policy_(a.mesh(), a.row_blocking(), features_, inner_, vertex_rows),
        hops_(hops),
        keep_(static_cast<T>(1 - alpha)),
        teleport_(static_cast<T>(alpha)) {
    for (int i = 0; i < 3; ++i) states_.emplace_back(a.mesh(), inner_, a.col_blocking(), features_);
  }

  void forward(const operand<T, Device>& h, matrix& z, const pass& = {}) override {
    auto &first = states_[0], *now = &states_[1], *next = &states_[2];
    to_policy_(written_out_(h), first);
    copy(first, *now);
    for (int k = 0; k < hops_; ++k) {
      forward_(*now, *next);  // (n, f)
      if (teleport_ != 0) zip(*next, first, *next, linear_combination<T>{keep_, teleport_});
      std::swap(now, next);
    }
    from_policy_(*now, z);
  }
  void backward(const operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (dh == nullptr) return;
    auto &sum = states_[0], *now = &states_[1], *next = &states_[2];
    to_policy_(dz, *now);
    fill(sum, T(0));
    for (int k = 0; k < hops_; ++k) {
      if (teleport_ != 0) zip(sum, *now, sum, linear_combination<T>{1, teleport_});
      backward_(*now, *next);  // (n, f)
      if (teleport_ != 0) transform(*next, *next, scaled<T>{keep_});
      std::swap(now, next);
    }
    zip(sum, *now, sum, std::plus<>{});
    from_policy_(sum, *dh);
  }

  global_index width() const override { return features_.size(); }
  traffic predicted() const override {
    return predicted_forward() + static_cast<global_index>(hops_) * backward_.predicted() +
           to_policy_.predicted() + from_policy_.predicted();
  }
  /// What this rank receives in one forward.
  traffic predicted_forward() const {
    return static_cast<global_index>(hops_) * forward_.predicted() + to_policy_.predicted() +
           from_policy_.predicted();
  }

 private:
  blocking features_;
  layout inner_;
  spmm_plan<T, Device> forward_, backward_;
  redistribution<T, Device> to_policy_, from_policy_;
  int hops_;
  T keep_, teleport_;
  std::deque<dense<T, dynamic_layout, Device>> states_;  ///< three, each (n, f), in the policy's layout
  dense_operand<T, Device> written_out_;
};

}  // namespace partita::nn
