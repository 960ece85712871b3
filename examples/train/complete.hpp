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
