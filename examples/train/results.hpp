// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The options of `train` for its data, and for the files that it writes.

#include <CLI/CLI.hpp>

#include "command.hpp"

void add_data_and_results(CLI::App& app, command& c);

/// Throws usage_error for options of checkpoints without --checkpoint, and for what does not go with --far,
/// --recompute always or --reproducible.
void complete_results(const CLI::App& app, const command& c);
