// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What reproduces a run.

#include <nlohmann/json_fwd.hpp>

#include "run.hpp"

/// Options, command line, data with checksums, program, date and host. Throws partita::error when a file of
/// the data cannot be read again.
nlohmann::ordered_json record_of(const command& c, int ranks, const outcome& run,
                                 const partita::io::dataset& data);
