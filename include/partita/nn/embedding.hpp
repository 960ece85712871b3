// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Learned input rows for vertices without features.

#include <cmath>

#include "partita/nn/builder.hpp"

namespace partita::nn {

/// X (n x width) uniform in [-a, a), a = sqrt(6 / (n + width)): the first dense layer of a network whose
/// input is the identity. A function of the seed and of global row and column, whatever the layout and the
/// ranks. `rows`: the row blocking. Local; no communication. Source: Glorot, Bengio (AISTATS 2010), eq. 16.
template <class T, class Device>
dense<T, dynamic_layout, Device> initial_embedding(const mesh<Device>& m, layout l, const blocking& rows,
                                                   global_index width, std::uint64_t seed) {
  constexpr std::uint64_t stream = 0x656d6265;
  const double a = std::sqrt(6.0 / static_cast<double>(rows.size() + width));
  dense<T, dynamic_layout, Device> x(m, l, rows, blocking::even(width, m.shape(), nesting::cols));  // (n, w)
  fill(x, T(0));
  transform_indexed(x, x, detail::uniform_entry<T>{random_key{seed, 0, stream}.word(), a});
  return x;
}

}  // namespace partita::nn
