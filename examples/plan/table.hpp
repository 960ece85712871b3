// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `plan` has found, as a table and as JSON.

#include <string>
#include <vector>

#include "../train/command.hpp"
#include "partita/train/choose_policy.hpp"

/// A candidate for the vertices in an order, see --partition.
struct planned {
  std::string partition;
  nn::policy_candidate of;
};

/// Throws budget_error that says which candidate needs least where the first one does not fit into --memory.
void require_fitting(const std::vector<planned>& all, const command& c);

/// The options given that `train` is to have beside those of a candidate, each after a blank and as a shell
/// reads it: not those of `plan` alone, nor --json, nor the machine, which `train` would emulate.
std::string given_in(const CLI::App& app);

/// The first rows and the one with the fewest words, why the first one is chosen, and the command that trains
/// so with what else was given.
void print_plan(const std::vector<planned>& all, const command& c, int ranks, int rows,
                const std::string& given);

/// All of them, and the options that the first one is. Throws error where the file cannot be written.
void write_plan(const std::string& path, const std::vector<planned>& all, const command& c, int ranks);
