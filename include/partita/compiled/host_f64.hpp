// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled_f64: those of compiled/host.hpp, in double
/// alone.

#include "partita/compiled/host_instances.hpp"

namespace partita {

PARTITA_HOST_INSTANCES(extern, double)

}  // namespace partita
