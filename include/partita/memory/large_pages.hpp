// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Large pages for large blocks of host memory.

#include <cstddef>
#include <cstdint>

#include "partita/base/processor.hpp"

namespace partita::memory {

/// Asks for large pages where they lie within [memory, memory + bytes), which has not been written: writing
/// it then faults once in 2 MB instead of 4 KB, and reading rows here and there seldom waits for addresses.
/// A hint, without effect on what fails or on small blocks, of which it might take more than is used.
inline void ask_for_large_pages(void* memory, std::size_t bytes) {
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  if (bytes < 8 * page) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  base::prefer_large_pages(reinterpret_cast<void*>(first), last - first);
}

}  // namespace partita::memory
