// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What follows from options of `train` that have been read, and which of them do not go together.

#include <CLI/CLI.hpp>

#include "command.hpp"

/// Throws usage_error for the first option that the model or the mode does not use.
void require_use(const CLI::App& app, const partita::nn::training_options& t);

/// Throws usage_error for fan-outs that do not match the layers; makes one fan-out that of all layers.
void complete_mini_batches(const CLI::App& app, command& c);

/// Layers with parameters, of the models that may have a single one; 0 for others.
int layers_of(const partita::nn::training_options& t);

/// Throws usage_error for options of stages that do not go together.
void complete_stages(const CLI::App& app, command& c);

/// The columns of rows for links, where they are to be predicted. Throws usage_error for options that do not go
/// together with that.
void complete_links(const CLI::App& app, command& c);

/// Throws usage_error where --products bf16 does not apply.
void complete_products(const command& c);

/// Throws usage_error for a --mesh auto that has nothing to compare.
void complete_mesh(const command& c);
