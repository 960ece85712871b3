// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled_f32: those of compiled/host.hpp, in float alone.

#include "partita/compiled/host_instances.hpp"

namespace partita {

PARTITA_HOST_INSTANCES(extern, float)

}  // namespace partita
