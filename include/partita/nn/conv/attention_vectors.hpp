// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention scalars computed with learned vectors.

#include "partita/algebra/attention/attention.hpp"
#include "partita/nn/activation.hpp"

namespace partita::nn {

namespace detail {

/// Whether column h of V contains element j of vector h mod heads: in all rows if heads share the columns of
/// X, else in the rows of its head.
struct vector_place {
  local_index heads, width;
  bool averaged;

  constexpr bool holds(global_index j, global_index h) const { return averaged || j / width == h % heads; }
};

/// V(j, h) from the vectors (heads x width): sources, then targets; 0 elsewhere.
template <class T>
struct spread_vector {
  vector_place place;
  const T *source, *target;

  constexpr T operator()(global_index j, global_index h, T) const {
    if (!place.holds(j, h)) return T(0);
    const T* const vectors = h < place.heads ? source : target;
    return vectors[h % place.heads * place.width + j % place.width];
  }
};

/// Element o of vector h, sources first, then targets, from V (w x 2 heads).
template <class T>
struct collected_vector {
  vector_place place;
  const T* from;

  constexpr T operator()(global_index h, global_index o, T) const {
    const global_index j = place.averaged ? o : h % place.heads * place.width + o;
    return from[j * 2 * place.heads + h];
  }
};

}  // namespace detail

/// (S | T) = X V (n x 2 heads = n x w times w x 2 heads): s_u(h) = a_src(h) . X_u, t_v(h) = a_dst(h) . X_v
/// over the columns of head h; a_src, a_dst (heads x width). Local; no communication.
template <class T, class Device>
class attention_vectors {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// Parameters "asrc" and "adst"; `rows`: those of X.
  attention_vectors(const algebra::attention_shape& shape, const blocking& rows, const builder<T, Device>& b)
      : place_{shape.heads, shape.width, shape.averaged},
        source_(b.glorot("asrc", {shape.heads, shape.width})),
        target_(b.glorot("adst", {shape.heads, shape.width})),
        vectors_(b.mesh(), matrix_shape{shape.columns(), 2 * shape.heads}),
        vector_gradient_(b.mesh(), vectors_.shape()),
        scores_(b.rows(rows, 2 * shape.heads)),
        gradient_(b.rows(rows, 2 * shape.heads)) {
    source_.is_summed_as(vectors_.shape().rows * vectors_.shape().cols);  // both, with zeros
    target_.is_summed_as({});
  }

  /// The scalars of X (n x 2 heads); valid until the next call.
  const matrix& forward(const matrix& x) {
    const detail::spread_vector<T> entry{place_, source_.value().local().data, target_.value().local().data};
    transform_indexed(vectors_, vectors_, entry);  // V (w, 2 heads)
    gemm(x, vectors_, scores_);                    // (n, 2 heads)
    return scores_;
  }
  /// The gradient of the scalars, to be set before backward.
  matrix& gradient() { return gradient_; }

  /// dx += the gradient through the scalars; also computes the gradients of the vectors.
  void backward(const matrix& x, matrix& dx) {
    algebra::weight_gradient_part(x, gradient_, vector_gradient_);  // dV (w, 2 heads)
    const std::span<T> of_source = source_.gradient().values(), of_target = target_.gradient().values();
    if (of_source.data() + of_source.size() != of_target.data())
      throw error("the gradients of attention's vectors do not lie one behind the other");
    auto both = weight::view(vectors_.mesh(), {2 * place_.heads, place_.width},
                             std::span(of_source.data(), 2 * of_source.size()));
    transform_indexed(both, both, detail::collected_vector<T>{place_, vector_gradient_.local().data});
    gemm(gradient_, transposed(vectors_), dx, T(1));  // + dS V^T (n, w)
  }

 private:
  using weight = dense<T, replicated, Device>;

  detail::vector_place place_;
  parameter<T, Device>&source_, &target_;
  weight vectors_, vector_gradient_;
  matrix scores_, gradient_;
};

}  // namespace partita::nn
