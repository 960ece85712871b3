// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The cores of threads and the pages of memory, as Linux lets a program choose them. Elsewhere, and with
/// PARTITA_POSIX_ONLY, nothing is chosen; see base/system.hpp. All functions are local.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#if __has_include(<sched.h>)
#include <sched.h>
#endif
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace partita::base {

/// Bit mask of up to 1024 core ids.
using core_mask = std::array<std::uint8_t, 128>;

#if defined(__linux__) && !defined(PARTITA_POSIX_ONLY)

/// The affinity mask of the calling thread; nothing where there is none.
inline std::optional<core_mask> cores_of_thread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return std::nullopt;
  core_mask cores{};
  for (std::size_t core = 0; core < 8 * cores.size(); ++core)
    if (CPU_ISSET(core, &mask)) cores[core / 8] = static_cast<std::uint8_t>(cores[core / 8] | 1u << core % 8);
  return cores;
}
/// Binds the calling thread to these cores; false where that fails or cannot be done.
inline bool bind_thread(const core_mask& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (std::size_t core = 0; core < 8 * cores.size(); ++core)
    if ((cores[core / 8] >> core % 8 & 1) != 0) CPU_SET(core, &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}
/// A hint that large pages are wanted for this memory, which consists of whole ones.
inline void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

#else

inline std::optional<core_mask> cores_of_thread() { return std::nullopt; }
inline bool bind_thread(const core_mask&) { return false; }
inline void prefer_large_pages(void*, std::size_t) {}

#endif

}  // namespace partita::base
