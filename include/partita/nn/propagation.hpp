// SPDX-License-Identifier: Apache-2.0
#pragma once
/// K consecutive products in the policy's layout, with one redistribution in and one out, independent of K.

#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "partita/algebra/row_chunks.hpp"
#include "partita/base/function.hpp"
#include "partita/nn/layer.hpp"
#include "partita/transfer/redistribution.hpp"
#include "partita/transfer/row_split.hpp"
#include "partita/transfer/staged_redistribution.hpp"

namespace partita::nn {

/// Z_k = (1 - alpha) A Z_(k-1) + alpha Z_0, k = 1..K, Z_0 = H; Z = Z_K (all n x f). Personalised PageRank for
/// alpha > 0, A^K H for alpha = 0.
///
/// What travels in each direction: redistribution of Z_0 to the policy's layout and of the result back, and
/// the traffic of K products (none under feature_column). Where every rank has all of A and split_chunks > 1,
/// the first redistribution is cut by the rows that chunks of A are the first to need, the last one by the
/// chunks' rows: that of chunk j + 1 travels while the first product of chunk j is computed, that of chunk
/// j - 1 while the last one is. Each row is still sent once. Sources: Klicpera et al. (ICLR 2019), eq. 4;
/// decoupled training: NeutronTP (VLDB 2025), section 4.1, its chunks section 4.2.
template <class T, class Device>
class propagation final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  propagation(const sparse<T, dynamic_layout, Device>& a, global_index width, int hops, double alpha,
              const builder<T, Device>& b)
      : features_(b.columns(width)),
        inner_(algebra::multiplied_layout(a, vertex_rows)),
        forward_(a, inner_, features_, b.options().products),
        backward_(transposed(a), inner_, features_, b.options().products),
        to_policy_(a.mesh(), a.col_blocking(), features_, vertex_rows, inner_),
        from_policy_(a.mesh(), a.row_blocking(), features_, inner_, vertex_rows),
        hops_(hops),
        keep_(static_cast<T>(1 - alpha)),
        teleport_(static_cast<T>(alpha)) {
    for (int i = 0; i < 3; ++i) states_.emplace_back(a.mesh(), inner_, a.col_blocking(), features_);
    const std::size_t chunks = b.options().split_chunks;
    if (chunks < 2 || hops < 1 || partition::same_blocks(a.mesh().shape(), vertex_rows, inner_)) return;
    if (algebra::row_chunks<T, Device>::fits(a)) forward_chunks_.emplace(*this, a, chunks);
    if (algebra::row_chunks<T, Device>::fits(transposed(a)))
      backward_chunks_.emplace(*this, transposed(a), chunks);
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& = {}) override {
    const matrix& x = written_out_(h);
    state& first = states_[0];
    const state* now = &first;
    if (!forward_chunks_) to_policy_(x, first);
    for (int k = 0; k < hops_; ++k) {
      state& next = states_[static_cast<std::size_t>(1 + k % 2)];
      hop(k, forward_, forward_chunks_, x, first, *now, {keep_, teleport_}, first, next, z);  // (n, f)
      now = &next;
    }
    if (!closes(forward_chunks_)) from_policy_(*now, z);
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (dh == nullptr) return;
    auto &sum = states_[0], *now = &states_[1], *next = &states_[2];
    if (!backward_chunks_) to_policy_(dz, *now);
    fill(sum, T(0));
    const auto add = [&](const state& part, T factor) {
      if (factor != 0) zip(sum, part, sum, base::linear_combination<T>{1, factor});
    };
    for (int k = 0; k < hops_; ++k) {
      if (k > 0) add(*now, teleport_);
      const bool last = k + 1 == hops_ && closes(backward_chunks_);
      hop(k, backward_, backward_chunks_, dz, *now, *now, {keep_, last ? T(1) : T(0)}, sum, *next,
          *dh);  // (n, f)
      if (k == 0) add(*now, teleport_);
      std::swap(now, next);
    }
    if (closes(backward_chunks_)) return;
    zip(sum, *now, sum, std::plus<>{});
    from_policy_(sum, *dh);
  }

  global_index width() const override { return features_.size(); }
  traffic predicted() const override {
    return predicted_forward() + static_cast<global_index>(hops_) * backward_.predicted() +
           redistributed(backward_chunks_);
  }
  traffic predicted_forward() const override {
    return static_cast<global_index>(hops_) * forward_.predicted() + redistributed(forward_chunks_);
  }

 private:
  using state = dense<T, dynamic_layout, Device>;

  /// The first and the last product of a direction in chunks of the rows of A.
  struct overlapped {
    overlapped(const propagation& p, const sparse<T, dynamic_layout, Device>& a, std::size_t chunks)
        : product(a, chunks),
          split(a.mesh(), a.col_blocking(), p.features_, vertex_rows, p.inner_, product.first_needed()),
          gather(a.mesh(), a.row_blocking(), p.features_, p.inner_, vertex_rows, product.rows()) {}

    algebra::row_chunks<T, Device> product;
    transfer::row_split<T, Device> split;
    transfer::staged_redistribution<T, Device> gather;
  };

  /// Whether the last product is cut, too: it is not where it is also the first one.
  bool closes(const std::optional<overlapped>& chunks) const { return chunks && hops_ > 1; }
  traffic redistributed(const std::optional<overlapped>& chunks) const {
    return (chunks ? chunks->split.predicted() : to_policy_.predicted()) +
           (closes(chunks) ? chunks->gather.predicted() : from_policy_.predicted());
  }

  /// Product k of a direction, to = f.a A from + f.b old. Its first one brings `in` to `arrived`, and its
  /// last one `to` to `out`, where they are cut.
  void hop(int k, spmm_plan<T, Device>& product, std::optional<overlapped>& chunks, const matrix& in,
           state& arrived, const state& from, base::linear_combination<T> f, const state& old, state& to,
           matrix& out) {
    const auto combine = [&] {
      if (f.b != 0)
        zip(to, old, to, f);
      else if (f.a != 1)
        transform(to, to, base::scaled<T>{f.a});
    };
    if (k == 0 && chunks) {
      multiply_arriving(*chunks, in, arrived, to);
      return combine();
    }
    if (k + 1 == hops_ && closes(chunks)) return multiply_leaving(*chunks, from, f, old, to, out);
    product(from, to);
    combine();
  }
  /// to = A in, as the rows of `in` arrive.
  void multiply_arriving(overlapped& c, const matrix& in, state& arrived, state& to) {
    c.split.start(0, in.local());
    for (std::size_t j = 0; j < c.product.count(); ++j) {
      if (j + 1 < c.product.count()) c.split.start(j + 1, in.local());
      c.split.finish(j, arrived.local());
      c.product(j, std::as_const(arrived).local(), to.local());
    }
  }
  /// to = f.a A from + f.b old, whose rows leave for `out` when they are computed.
  void multiply_leaving(overlapped& c, const state& from, base::linear_combination<T> f, const state& old,
                        state& to, matrix& out) {
    const std::size_t count = c.product.count();
    for (std::size_t j = 0; j < count; ++j) {
      c.product(j, f.a, from.local(), f.b, old.local(), to.local());
      c.gather.start(j, std::as_const(to).local());
      if (j > 0) c.gather.finish(j - 1, std::as_const(to).local(), out.local());
    }
    c.gather.finish(count - 1, std::as_const(to).local(), out.local());
  }

  blocking features_;
  layout inner_;
  spmm_plan<T, Device> forward_, backward_;
  redistribution<T, Device> to_policy_, from_policy_;
  int hops_;
  T keep_, teleport_;
  std::deque<state> states_;  ///< three, each (n, f), in the policy's layout
  algebra::dense_operand<T, Device> written_out_;
  std::optional<overlapped> forward_chunks_, backward_chunks_;
};

}  // namespace partita::nn
