#pragma once
/// Dropout, relu and elu. On any layout; nothing travels.

#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/base/function.hpp"
#include "partita/base/random.hpp"

namespace partita {

namespace detail {

/// x scale, or 0 where the field `word` has less than `threshold` at (i, j), in its upper 53 bits.
template <class T>
struct dropped {
  std::uint64_t word;
  std::uint64_t threshold;
  T scale;

  constexpr T operator()(global_index i, global_index j, T x) const {
    return (random_bits(word, i, j) >> 11) < threshold ? T(0) : x * scale;
  }
};

}  // namespace detail

/// Which entries are dropped: a pure function of seed, epoch, layer and the global row and column, so that no
/// result depends on the number of ranks.
struct dropout_mask {
  double probability = 0;
  random_key key;

  template <class T>
  detail::dropped<T> function() const {
    const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1.0p53));
    return {key.word(), threshold, static_cast<T>(1 / (1 - probability))};
  }
};

/// y(i, j) = x(i, j) / (1 - p), or 0 with probability p; y may be x.
template <class T, layout L, class Place>
void dropout(const dense<T, L, Place>& x, dense<T, L, Place>& y, const dropout_mask& mask) {
  map_indexed(x, y, mask.function<T>());
}

namespace detail {

template <class T>
struct dropped_relu {
  dropped<T> drop;
  constexpr T operator()(global_index i, global_index j, T x) const {
    return x > T(0) ? drop(i, j, x) : T(0);
  }
};

template <class T>
struct relu_gradient {
  T scale;
  constexpr T operator()(T out, T d) const { return out > T(0) ? d * scale : T(0); }
};

template <class T>
struct dropped_elu {
  dropped<T> drop;
  constexpr T operator()(global_index i, global_index j, T x) const {
    return drop(i, j, x > T(0) ? x : std::expm1(x));
  }
};

/// d exp(x), x <= 0, from out = (exp(x) - 1) / keep.
template <class T>
struct elu_gradient {
  T keep;
  constexpr T operator()(T out, T d) const { return out > T(0) ? d : d * (out * keep + T(1)); }
};

}  // namespace detail

namespace activation {

/// h = dropout(max(h, 0)), and the gradient of its input from its output: what is not positive was cut or
/// dropped.
struct relu {
  template <class T, layout L, class Place>
  static void forward(dense<T, L, Place>& h, const dropout_mask& mask) {
    if (mask.probability == 0) return map(h, h, positive_part{});
    map_indexed(h, h, detail::dropped_relu<T>{mask.function<T>()});
  }
  /// dh: d loss / d output in, d loss / d input out.
  template <class T, layout L, class Place>
  static void backward(const dense<T, L, Place>& h, dense<T, L, Place>& dh, const dropout_mask& mask) {
    zip(h, dh, dh, detail::relu_gradient<T>{mask.function<T>().scale});
  }
};

/// h = dropout(h > 0 ? h : exp(h) - 1).
struct elu {
  template <class T, layout L, class Place>
  static void forward(dense<T, L, Place>& h, const dropout_mask& mask) {
    map_indexed(h, h, detail::dropped_elu<T>{mask.function<T>()});
  }
  template <class T, layout L, class Place>
  static void backward(const dense<T, L, Place>& h, dense<T, L, Place>& dh, const dropout_mask& mask) {
    dropout(dh, dh, mask);
    zip(h, dh, dh, detail::elu_gradient<T>{static_cast<T>(1 - mask.probability)});
  }
};

}  // namespace activation

}  // namespace partita
