// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which ranks share a machine.

#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

#include "partita/comm/communicator.hpp"

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

/// The ranks of `world` on the machine of this one, itself included, in order. Every rank must call.
inline std::vector<int> ranks_on_machine(const partita::communicator& world) {
  const auto mine = static_cast<partita::global_index>(std::hash<std::string>()(host_name()));
  const std::vector<partita::global_index> machines = world.all_gather(mine);
  std::vector<int> here;
  for (int rank = 0; rank < world.size(); ++rank)
    if (machines[static_cast<std::size_t>(rank)] == mine) here.push_back(rank);
  return here;
}
