// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/host.hpp"

namespace partita {

template void threads::detail::run_ranks<void>(int, const std::function<void(const communicator&)>&,
                                               const options&);

PARTITA_HOST_INSTANCES(, double)

}  // namespace partita
