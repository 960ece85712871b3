// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dropout: which entries of a matrix become 0, and the verb. On any layout; nothing travels.

#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/base/random.hpp"

namespace partita {

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

/// Which entries are dropped: a pure function of seed, epoch, layer and the global row and column, so that no
/// result depends on the number of ranks.
struct dropout_mask {
  double probability = 0;
  random_key key;

  template <class T>
  dropped<T> function() const {
    const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1.0p53));
    return {key.word(), threshold, static_cast<T>(1 / (1 - probability))};
  }
};

/// y(i, j) = x(i, j) / (1 - p), or 0 with probability p; y may be x.
template <class T, layout L, class Device>
void dropout(const dense<T, L, Device>& x, dense<T, L, Device>& y, const dropout_mask& mask) {
  transform_indexed(x, y, mask.function<T>());
}

}  // namespace partita
