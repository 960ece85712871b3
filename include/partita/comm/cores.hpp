// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CPU affinity of threads, on Linux; elsewhere threads may use all cores and are not bound.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "partita/base/processor.hpp"

namespace partita::comm {

/// Bit mask of up to 1024 core ids; trivially copyable, so that ranks can exchange it.
using core_set = base::core_mask;

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
  if (const auto cores = base::cores_of_thread()) return *cores;
  core_set cores{};
  for (std::size_t core = 0;
       core < std::min<std::size_t>(std::thread::hardware_concurrency(), 8 * cores.size()); ++core)
    cores[core / 8] = static_cast<std::uint8_t>(cores[core / 8] | 1u << core % 8);
  return cores;
}

/// The share of one of `parts` threads, as many cores as of the others or one more or less, with consecutive
/// ids; all cores where there are fewer than parts.
inline core_set share_of(const core_set& cores, int part, int parts) {
  const int all = count(cores);
  if (all < parts) return cores;
  core_set share{};
  for (std::size_t core = 0, place = 0; core < 8 * cores.size(); ++core) {
    if (!contains(cores, core)) continue;
    const auto owner =
        static_cast<int>(((place + 1) * static_cast<std::size_t>(parts) - 1) / static_cast<std::size_t>(all));
    if (owner == part) share[core / 8] = static_cast<std::uint8_t>(share[core / 8] | 1u << core % 8);
    ++place;
  }
  return share;
}

/// Binds the calling thread, and threads that it creates meanwhile, to these cores, for the scope of this
/// object; does nothing where the system refuses.
class bound_to {
 public:
  explicit bound_to(const core_set& cores) : before_(usable_cores()), bound_(base::bind_thread(cores)) {}
  bound_to(const bound_to&) = delete;
  bound_to& operator=(const bound_to&) = delete;
  ~bound_to() {
    if (bound_) base::bind_thread(before_);
  }

 private:
  core_set before_;
  bool bound_;
};

}  // namespace partita::comm
