#pragma once
/// Dropout, relu and elu. On any layout; nothing travels.

#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/base/random.hpp"

namespace partita {

/// Which entries are dropped: a pure function of seed, epoch, layer and the global row and column, so that no
/// result depends on the number of ranks.
struct dropout_mask {
  double probability = 0;
  random_key key;

  template <class T>
  auto function() const {
    const std::uint64_t word = key.word();
    const double p = probability;
    const T scale = static_cast<T>(1 / (1 - p));
    return [=](global_index i, global_index j, T x) {
      return random_uniform(word, i, j) < p ? T(0) : x * scale;
    };
  }
};

/// y(i, j) = x(i, j) / (1 - p), or 0 with probability p; y may be x.
template <class T, class Layout, class Place>
void dropout(const dense<T, Layout, Place>& x, dense<T, Layout, Place>& y, const dropout_mask& mask) {
  map_indexed(x, y, mask.function<T>());
}

namespace activation {

/// h = dropout(max(h, 0)), and the gradient of its input from its output: what is not positive was cut or
/// dropped.
struct relu {
  template <class T, class Layout, class Place>
  static void forward(dense<T, Layout, Place>& h, const dropout_mask& mask) {
    if (mask.probability == 0) return map(h, h, [](T v) { return v > T(0) ? v : T(0); });
    const auto drop = mask.function<T>();
    map_indexed(h, h,
                [drop](global_index i, global_index j, T v) { return v > T(0) ? drop(i, j, v) : T(0); });
  }
  /// dh: d loss / d output in, d loss / d input out.
  template <class T, class Layout, class Place>
  static void backward(const dense<T, Layout, Place>& h, dense<T, Layout, Place>& dh,
                       const dropout_mask& mask) {
    const T scale = static_cast<T>(1 / (1 - mask.probability));
    zip(h, dh, dh, [scale](T out, T d) { return out > T(0) ? d * scale : T(0); });
  }
};

/// h = dropout(h > 0 ? h : exp(h) - 1).
struct elu {
  template <class T, class Layout, class Place>
  static void forward(dense<T, Layout, Place>& h, const dropout_mask& mask) {
    const auto drop = mask.function<T>();
    map_indexed(h, h, [drop](global_index i, global_index j, T v) {
      return drop(i, j, v > T(0) ? v : std::expm1(v));
    });
  }
  template <class T, class Layout, class Place>
  static void backward(const dense<T, Layout, Place>& h, dense<T, Layout, Place>& dh,
                       const dropout_mask& mask) {
    const auto drop = mask.function<T>();
    const T keep = static_cast<T>(1 - mask.probability);
    map_indexed(dh, dh, drop);
    zip(h, dh, dh, [keep](T out, T d) { return out > T(0) ? d : d * (out * keep + T(1)); });
  }
};

}  // namespace activation

}  // namespace partita
