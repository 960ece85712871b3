// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What follows from options of `train` that have been read, and which of them do not go together.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <utility>

#include "command.hpp"

/// Throws usage_error with this sentence where something is wrong.
template <class... Args>
void refuse_if(bool wrong, fmt::format_string<Args...> sentence, Args&&... args) {
  if (wrong) throw usage_error(fmt::format(sentence, std::forward<Args>(args)...));
}

/// Fills in what is not given: a policy for batches and stages, and fan-outs. Throws usage_error for the
/// first option that the model or the mode does not use, or that does not go with another one.
void complete(const CLI::App& app, command& c);

/// Layers with parameters; 0 for models that the options do not count them of. Local.
int layers_of(const nn::training_options& t);

/// Throws usage_error, which names the option, for a model that cannot be cut into stages.
void require_stages_possible(const nn::training_options& t, const char* option);
