// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cores that a process may run on.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <thread>

namespace partita::comm {

/// Cores of a machine by their numbers, one bit each, up to 1024; ranks can exchange it.
using core_set = std::array<std::uint8_t, 128>;

constexpr bool contains(const core_set& cores, std::size_t core) {
  return (cores[core / 8] >> core % 8 & 1) != 0;
}

constexpr int count(const core_set& cores) {
  int n = 0;
  for (const std::uint8_t byte : cores) n += std::popcount(byte);
  return n;
}

/// Those that the calling thread may use, as its launcher or its user has bound it; where the system does not
/// say which, as many as std::thread::hardware_concurrency.
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
