#pragma once
/// relu and dropout. On any layout; nothing travels.

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

/// y = dropout(max(x, 0)); y may be x. Without a mask (probability 0): relu.
template <class T, class Layout, class Place>
void relu_dropout(const dense<T, Layout, Place>& x, dense<T, Layout, Place>& y,
                  const dropout_mask& mask = {}) {
  if (mask.probability == 0) return map(x, y, [](T v) { return v > T(0) ? v : T(0); });
  const auto drop = mask.function<T>();
  map_indexed(x, y, [drop](global_index i, global_index j, T v) { return v > T(0) ? drop(i, j, v) : T(0); });
}

/// dx = dy * d relu_dropout / dx, from the output y: an entry that is not positive was cut or dropped. dx may
/// be dy.
template <class T, class Layout, class Place>
void relu_dropout_gradient(const dense<T, Layout, Place>& y, const dense<T, Layout, Place>& dy,
                           dense<T, Layout, Place>& dx, const dropout_mask& mask = {}) {
  const T scale = static_cast<T>(1 / (1 - mask.probability));
  zip(y, dy, dx, [scale](T out, T d) { return out > T(0) ? d * scale : T(0); });
}

}  // namespace partita
