// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Work on a rank's own threads for code that reads and writes host memory whatever the device.

#include "partita/local/host/parallel.hpp"

namespace partita::local {

/// Runs f(0), ..., f(parts - 1), each on its own thread: a team of the calling thread, which it keeps until
/// it ends. Rethrows the first exception.
using on_host::run_parts;

}  // namespace partita::local
