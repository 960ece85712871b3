// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How large a packed file may become.

#include <cstddef>

namespace partita::io {

/// How much is unpacked of `packed` bytes: 64 times as much and 1 MiB, more than files of graphs need. What
/// claims to hold more is refused, and never takes the memory.
constexpr std::size_t most_unpacked(std::size_t packed) { return 64 * packed + (std::size_t{1} << 20); }

}  // namespace partita::io
