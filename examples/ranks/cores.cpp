// SPDX-License-Identifier: Apache-2.0
#include "cores.hpp"

#include <algorithm>

#include "../ranks/machine.hpp"
#include "arrangement.hpp"
#include "partita/comm/cores.hpp"

double share_of_cores(const partita::communicator& world) {
  const partita::comm::core_set cores = partita::comm::usable_cores();
  const std::vector<std::uint8_t> all = world.all_gather(cores);
  const std::vector<int> here = ranks_on_machine(world);
  const auto users_of = [&](std::size_t core) {
    return std::ranges::count_if(here, [&](int rank) {
      partita::comm::core_set theirs;
      std::copy_n(all.begin() + rank * std::ssize(theirs), theirs.size(), theirs.begin());
      return partita::comm::contains(theirs, core);
    });
  };
  double share = 1e-6;  // a third of each of three cores is one
  for (std::size_t core = 0; core < 8 * cores.size(); ++core)
    if (partita::comm::contains(cores, core)) share += 1 / static_cast<double>(users_of(core));
  return -world.all_reduce(-share, partita::reduction::max);
}

int cores_per_rank(const partita::communicator& world) {
  return std::max(1, static_cast<int>(share_of_cores(world)));
}

int threads_per_rank(const partita::communicator& world, std::optional<int> asked) {
  const int share = cores_per_rank(world);
  if (asked.value_or(1) > share)
    throw usage_error("--threads " + std::to_string(*asked) + " is more than the " + std::to_string(share) +
                      (share == 1 ? " core" : " cores") + " that each of " + std::to_string(world.size()) +
                      " ranks has on its machine");
  return asked.value_or(share);
}
