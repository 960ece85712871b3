#pragma once
/// Relu and elu, with dropout. On any layout; nothing travels.

#include <cmath>

#include "partita/algebra/dropout.hpp"
#include "partita/base/function.hpp"

namespace partita {

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
