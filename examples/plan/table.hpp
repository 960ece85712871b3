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

/// Those whose buffers fit into `most` bytes first; among these, and the others, the fastest first.
void sort_by_seconds(std::vector<planned>& all, std::optional<std::size_t> most);

/// The first rows, and why the first one is chosen.
void print_plan(const std::vector<planned>& all, const command& c, int ranks, int rows);

/// All of them, and the command that trains so. Throws error where the file cannot be written.
void write_plan(const std::string& path, const std::vector<planned>& all, const command& c, int ranks);
