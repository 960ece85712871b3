#pragma once
/// K products in a row in the policy's own layout: one way in, one way out, whatever K is.

#include <deque>
#include <functional>

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/base/function.hpp"

namespace partita {

/// Z_k = (1 - alpha) A Z_(k-1) + alpha Z_0, k = 1..K; the result is Z_K (n x f, vertex_rows). Personalised
/// PageRank for alpha > 0; A^K Z_0 for alpha = 0. And its adjoint.
///
/// Every rank of the mesh must construct and run it. What travels in each direction: Z_0 goes to the policy's
/// layout, the traffic of K products (none under feature_column), and the result comes back. Sources:
/// Klicpera et al. (ICLR 2019), eq. 4; decoupled training: NeutronTP (VLDB 2025), section 4.1.
template <class T, class Place>
class hops {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  hops(const sparse<T, dynamic_layout, Place>& a, const blocking& features, int count, double alpha,
       spmm_options options = {})
      : inner_(multiplied_layout(a, vertex_rows)),
        forward_(a, inner_, features, options),
        backward_(transposed(a), inner_, features, options),
        enter_(a.mesh(), a.col_blocking(), features, vertex_rows, inner_),
        leave_(a.mesh(), a.row_blocking(), features, inner_, vertex_rows),
        count_(count),
        alpha_(alpha) {
    for (int i = 0; i < 3; ++i) states_.emplace_back(a.mesh(), inner_, a.col_blocking(), features);
  }

  /// Z_K from Z_0.
  void forward(const matrix& z0, matrix& z) {
    auto &first = states_[0], *now = &states_[1], *next = &states_[2];
    enter_(z0, first);
    copy(first, *now);
    const T keep = static_cast<T>(1 - alpha_), teleport = static_cast<T>(alpha_);
    for (int k = 0; k < count_; ++k) {
      forward_(*now, *next);  // (n, f)
      if (alpha_ != 0) zip(*next, first, *next, linear_combination<T>{keep, teleport});
      std::swap(now, next);
    }
    leave_(*now, z);
  }

  /// d loss / d Z_0 from d loss / d Z_K.
  void backward(const matrix& dz, matrix& dz0) {
    auto &sum = states_[0], *now = &states_[1], *next = &states_[2];
    enter_(dz, *now);
    fill(sum, T(0));
    const T keep = static_cast<T>(1 - alpha_), teleport = static_cast<T>(alpha_);
    for (int k = 0; k < count_; ++k) {
      if (alpha_ != 0) zip(sum, *now, sum, linear_combination<T>{1, teleport});
      backward_(*now, *next);  // (n, f)
      if (alpha_ != 0) map(*next, *next, scaled<T>{keep});
      std::swap(now, next);
    }
    zip(sum, *now, sum, std::plus<>{});
    leave_(sum, dz0);
  }

  /// What this rank receives in one forward and one backward, in closed form.
  volume predicted() const {
    return static_cast<global_index>(count_) * (forward_.predicted() + backward_.predicted()) +
           2 * (enter_.predicted() + leave_.predicted());
  }

 private:
  layout inner_;
  spmm_plan<T, Place> forward_, backward_;
  redistribution<T, Place> enter_, leave_;
  int count_;
  double alpha_;
  std::deque<dense<T, dynamic_layout, Place>> states_;  ///< three, (n, f) under the policy
};

}  // namespace partita
