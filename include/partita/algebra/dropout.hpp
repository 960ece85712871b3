// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dropout: the mask, and its application to a matrix in any layout. Local; no communication.

#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/base/random.hpp"

namespace partita {

/// Which entries are dropped: a pure function of seed, epoch, layer and the global row and column, so that
/// results do not depend on the number of ranks. Where the rows of matrices are a selection of vertices,
/// `vertices` (in the memory of the device) has the vertex of each row, and takes its place.
struct dropout_mask {
  double probability = 0;
  random_key key;
  const global_index* vertices = nullptr;

  template <class T>
  base::dropped<T> function() const {
    const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1.0p53));
    return {key.word(), threshold, static_cast<T>(1 / (1 - probability)), vertices};
  }
};

/// y(i, j) = x(i, j) / (1 - p), or 0 with probability p; y may alias x. Local; no communication.
template <class T, layout L, class Device>
void dropout(const dense<T, L, Device>& x, dense<T, L, Device>& y, const dropout_mask& mask) {
  transform_indexed(x, y, mask.function<T>());
}

}  // namespace partita
