// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/host.hpp"

namespace partita {

PARTITA_HOST_INSTANCES(, float)

}  // namespace partita
