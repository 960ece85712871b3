// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What costs least, on a machine that need not be there or by words and bytes; a translation unit with
/// training on the CPU.

#include <vector>

#include "command.hpp"
#include "partita/train/choose_policy.hpp"

/// What is compared: policies and meshes of all ranks for a whole graph, or, on so many stages, of a stage,
/// with numbers of chunks; of batches the placements, with the policy of the evaluation.
struct plan_search {
  nn::policy_search policies;
  int stages = 0;
  std::vector<int> stage_chunks = {0};
};

/// The one whose epoch takes least time on a machine whose kernels are measured, and all candidates; without
/// a machine by words and bytes, which placements are not compared by. Every rank of `world`, which are as
/// many as there, must call. Throws budget_error where none fits.
nn::policy_choice choose_on(const partita::emulated::machine* on, const plan_search& from,
                            const partita::communicator& world, const io::dataset& data, const command& c);
