// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CPU affinity of a process.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <thread>

namespace partita::comm {

/// Bit mask of up to 1024 core ids; trivially copyable, so that ranks can exchange it.
using core_set = std::array<std::uint8_t, 128>;

constexpr bool contains(const core_set& cores, std::size_t core) {
  return (cores[core / 8] >> core % 8 & 1) != 0;
}

constexpr int count(const core_set& cores) {
  int n = 0;
  for (const std::uint8_t byte : cores) n += std::popcount(byte);
  return n;
}

/// The calling thread's affinity mask; if unavailable, the first std::thread::hardware_concurrency() cores.
inline core_set usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0)
    for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core) CPU_SET(core, &mask);
  core_set cores{};
  for (std::size_t core = 0; core < 8 * cores.size(); ++core)
    if (CPU_ISSET(core, &mask)) cores[core / 8] = static_cast<std::uint8_t>(cores[core / 8] | 1u << core % 8);
  return cores;
}

}  // namespace partita::comm
