// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where edge coefficients are computed, and how their gradients are communicated.

#include <cstdint>

namespace partita::algebra {

/// How d loss / d alpha_uv = dY_v . X_u of an edge reaches the owner of v. `automatic` takes `rows` or
/// `edges`, whichever makes the busiest rank receive less. If ranks with different columns of one head would
/// compute the same coefficients, as under feature_column, it takes `owners` if the busiest rank then has
/// less to do, counting words received and coefficients computed.
enum class coefficient_gradient : std::uint8_t {
  automatic,
  rows,   ///< gather whole rows of X referenced by in-edges of own vertices, each once
  edges,  ///< sampled products in the policy's layout, then redistribution of partial edge values
  /// The owner of v alone also computes the coefficients, and products use whole rows; on blocks of sampled
  /// neighbours, whose rows are all on one rank, as automatic.
  owners
};

}  // namespace partita::algebra
