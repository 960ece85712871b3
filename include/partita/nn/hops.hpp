#pragma once
/// K products in a row in the policy's own layout: one way in, one way out, whatever K is.

#include <functional>

#include "partita/base/function.hpp"
#include "partita/nn/propagation.hpp"

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

  hops(const graph_operator<T, Place>& a, const blocking& features, int count, double alpha,
       spmm_options options = {})
      : mesh_(a.mesh()),
        forward_(schedule(a, features, options)),
        backward_(schedule(transposed(a), features, options)),
        passage_(a, features),
        count_(count),
        alpha_(alpha) {
    const rectangle inner = block_of(a.col_blocking(), features, a.dense_cut(), mesh_.at());
    for (auto& b : blocks_) b = buffer<T, Place>(mesh_.queue(), static_cast<std::size_t>(inner.size()));
    rows_ = narrow(inner.rows.size(), "the rows of a dense block");
    cols_ = narrow(inner.cols.size(), "the columns of a dense block");
  }

  /// Z_K from Z_0.
  void forward(const matrix& z0, matrix& z) {
    const matrix_view<T> first = block(0), one = block(1), two = block(2);
    enter(z0, first);
    matrix_view<T> now = one, next = two;
    kernels<Place>::copy(mesh_.queue(), first, now);
    const T keep = static_cast<T>(1 - alpha_), teleport = static_cast<T>(alpha_);
    for (int k = 0; k < count_; ++k) {
      forward_(now, next);
      if (alpha_ != 0)
        kernels<Place>::zip(mesh_.queue(), linear_combination<T>{keep, teleport}, next, first, next);
      std::swap(now, next);
    }
    leave(now, z);
  }

  /// d loss / d Z_0 from d loss / d Z_K.
  void backward(const matrix& dz, matrix& dz0) {
    const matrix_view<T> sum = block(0), one = block(1), two = block(2);
    matrix_view<T> now = one, next = two;
    enter(dz, now);
    kernels<Place>::fill(mesh_.queue(), T(0), sum);
    const T keep = static_cast<T>(1 - alpha_), teleport = static_cast<T>(alpha_);
    for (int k = 0; k < count_; ++k) {
      if (alpha_ != 0) kernels<Place>::zip(mesh_.queue(), linear_combination<T>{1, teleport}, sum, now, sum);
      backward_(now, next);
      if (alpha_ != 0) kernels<Place>::map(mesh_.queue(), scaled<T>{keep}, next, next);
      std::swap(now, next);
    }
    kernels<Place>::zip(mesh_.queue(), std::plus<>{}, sum, now, sum);
    leave(sum, dz0);
  }

  /// What this rank receives in one forward and one backward, in closed form.
  volume predicted() const {
    return static_cast<global_index>(count_) * (forward_.predicted() + backward_.predicted()) +
           2 * passage_.predicted();
  }

 private:
  static detail::spmm_schedule<T, Place> schedule(const graph_operator<T, Place>& a, const blocking& features,
                                                  spmm_options options) {
    return {a.mesh(), a.local(),      a.row_blocking(), a.col_blocking(),
            features, a.sparse_cut(), a.dense_cut(),    options};
  }
  matrix_view<T> block(std::size_t i) { return {blocks_[i].data(), rows_, cols_, cols_}; }
  void enter(const matrix& x, matrix_view<T> y) {
    if (passage_.travels())
      passage_.enter(x.local(), y);
    else
      kernels<Place>::copy(mesh_.queue(), x.local(), y);
  }
  void leave(matrix_view<const T> x, matrix& y) {
    if (passage_.travels())
      passage_.leave(x, y.local());
    else
      kernels<Place>::copy(mesh_.queue(), x, y.local());
  }

  mesh<Place> mesh_;
  detail::spmm_schedule<T, Place> forward_, backward_;
  policy_passage<T, Place> passage_;
  int count_;
  double alpha_;
  local_index rows_ = 0, cols_ = 0;
  std::array<buffer<T, Place>, 3> blocks_;
};

}  // namespace partita
