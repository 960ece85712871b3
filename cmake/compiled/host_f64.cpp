// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/host_instances.hpp"

namespace partita {

PARTITA_HOST_INSTANCES(, double)

}  // namespace partita
