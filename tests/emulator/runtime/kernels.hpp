// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device code of the program: fat binaries, modules on each device, and launches.
#include <cuda_runtime_api.h>
#include <map>

#include "../ptx/block.hpp"

namespace emulator {

/// Of the PTX that the program carries, as 10 times major and minor; 90 where it carries none.
int compute_capability();

/// What grids have cost so far, by kernel.
struct kernel_account {
  std::uint64_t launches = 0, threads = 0;
  ptx::account spent;
};
std::map<std::string, kernel_account> kernel_accounts();
/// Whether launches count the sectors of memory that they touch.
void count_sectors(bool on);

}  // namespace emulator
