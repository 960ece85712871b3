// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How the gradients of edge coefficients are communicated.

#include <cstdint>

namespace partita {

/// How d loss / d alpha_uv = dY_v . X_u of an edge reaches the owner of v; `automatic` minimises what the
/// busiest rank receives.
enum class coefficient_gradient : std::uint8_t {
  automatic,
  rows,  ///< gather whole rows of X referenced by in-edges of own vertices, each once
  edges  ///< sampled products in the policy's layout, then redistribution of partial edge values
};

}  // namespace partita
