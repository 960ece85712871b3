// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What of the options is more than the graph or the memory of this machine allows.

#include "command.hpp"
#include "partita/io/labelled_graph.hpp"

/// Throws usage_error for more chunks than vertices and larger samples than there are edges, and
/// partita::error for a model that `ranks` ranks, as threads of this process or one in each, cannot have in
/// this machine's memory. Nothing large is taken before. Local.
void require_bounds(const command& c, const partita::io::dataset& data, int ranks);
