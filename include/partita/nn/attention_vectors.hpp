#pragma once
/// The scalars that attention is computed from, by learned vectors.

#include "partita/nn/attention.hpp"
#include "partita/nn/initialization.hpp"

namespace partita {

namespace detail {

/// Whether column h of V has vector h mod heads in row j: in every row where heads share the columns of X,
/// else in the rows of its head.
struct vector_place {
  local_index heads, width;
  bool averaged;

  constexpr bool holds(local_index j, local_index h) const { return averaged || j / width == h % heads; }
};

/// V(j, h) from the vectors (heads x width): sources, then targets; 0 elsewhere.
template <class T>
struct spread_vector {
  vector_place place;
  const T *source, *target;

  constexpr T operator()(local_index j, local_index h, T) const {
    if (!place.holds(j, h)) return T(0);
    const T* const vectors = h < place.heads ? source : target;
    return vectors[h % place.heads * place.width + j % place.width];
  }
};

/// Element o of vector h from V (w x 2 heads), whose first column counted here is that of vector 0.
template <class T>
struct collected_vector {
  vector_place place;
  const T* from;

  constexpr T operator()(local_index h, local_index o, T) const {
    const local_index j = place.averaged ? o : h * place.width + o;
    return from[std::ptrdiff_t{j} * 2 * place.heads + h];
  }
};

}  // namespace detail

/// (S | T) = X V (n x 2 heads = n x w times w x 2 heads): s_u(h) = a_src(h) . X_u, t_v(h) = a_dst(h) . X_v
/// over the columns of head h; a_src, a_dst (heads x width).
///
/// X is in vertex_rows, so nothing travels; gradients are this rank's part until parameters::sum_gradients.
template <class T, class Place>
class attention_vectors {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// Parameters "asrc" + name and "adst" + name, Glorot.
  attention_vectors(parameters<T, Place>& set, const blocking& rows, const std::string& name,
                    const attention_shape& shape, double decay, std::uint64_t seed)
      : set_(&set),
        place_{shape.heads, shape.width, shape.averaged},
        width_(narrow(shape.columns(), "the width of attention")),
        source_(set.add("asrc" + name, {shape.heads, shape.width}, decay)),
        target_(set.add("adst" + name, {shape.heads, shape.width}, decay)),
        scores_(set.mesh(), rows, blocking::even(2 * shape.heads, set.mesh().shape(), nesting::cols)),
        gradient_(set.mesh(), rows, scores_.col_blocking()) {
    glorot(set, source_, seed);
    glorot(set, target_, seed);
    const auto size = static_cast<std::size_t>(width_) * static_cast<std::size_t>(2 * shape.heads);
    vectors_ = buffer<T, Place>(set.mesh().queue(), size);
    vector_gradient_ = buffer<T, Place>(set.mesh().queue(), size);
  }

  /// The scalars of X (n/P x 2 heads); valid until the next call.
  const matrix& forward(const matrix& x) {
    const auto& q = set_->mesh().queue();
    const detail::spread_vector<T> entry{place_, set_->value(source_).data, set_->value(target_).data};
    map_indexed(q, entry, of(vectors_), of(vectors_));  // (w, 2 heads)
    gemm(q, false, false, T(1), x.local(), of(vectors_), T(0),
         scores_.local());  // (n/P, 2 heads)
    return scores_;
  }
  /// Where the gradient of the scalars belongs before backward.
  matrix& gradient() { return gradient_; }

  /// dx += what comes by way of the scalars, and the gradients of the vectors.
  void backward(const matrix& x, matrix& dx) {
    const auto& q = set_->mesh().queue();
    gemm(q, true, false, T(1), x.local(), gradient_.local(), T(0),
         of(vector_gradient_));  // (w, 2 heads)
    const auto collect = [&](matrix_view<T> to, const T* from) {
      map_indexed(q, detail::collected_vector<T>{place_, from}, to, to);  // (heads, width)
    };
    collect(set_->gradient(source_), vector_gradient_.data());
    collect(set_->gradient(target_), vector_gradient_.data() + place_.heads);
    gemm(q, false, true, T(1), gradient_.local(), of(vectors_), T(1),
         dx.local());  // (n/P, w)
  }

 private:
  matrix_view<T> of(buffer<T, Place>& b) const {
    return {b.data(), width_, 2 * place_.heads, 2 * place_.heads};
  }

  parameters<T, Place>* set_;
  detail::vector_place place_;
  local_index width_;
  std::size_t source_, target_;
  matrix scores_, gradient_;
  buffer<T, Place> vectors_, vector_gradient_;  ///< (w, 2 heads)
};

}  // namespace partita
