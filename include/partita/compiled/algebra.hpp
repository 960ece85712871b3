// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled, in float and double on the host, for programs
/// without layers: matrices, their products and exchanges. compiled/host.hpp has these and more, but takes a
/// second or two to read.

#include "partita/compiled/algebra_instances.hpp"

namespace partita {

PARTITA_ALGEBRA_INSTANCES(extern, float)
PARTITA_ALGEBRA_INSTANCES(extern, double)

}  // namespace partita
