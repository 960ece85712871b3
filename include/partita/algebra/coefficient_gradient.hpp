// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the gradient of a value of an edge is brought together.

#include <cstdint>

namespace partita {

/// How d loss / d alpha_uv = dY_v . X_u of an edge comes to the rank that owns v; `automatic` takes what
/// makes the busiest rank receive less.
enum class coefficient_gradient : std::uint8_t {
  automatic,
  rows,  ///< the rows of X that in-edges of own vertices name, each once, all columns
  edges  ///< sampled products where X and dY lie under the policy, and parts of the values of edges
};

}  // namespace partita
