// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How much memory a file may ask for. Needs POSIX.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <sys/resource.h>

#include "partita/base/system.hpp"

namespace partita::io {

/// Free memory of this machine in bytes, at most what the process may have (ulimit -v); the largest number
/// if the system does not report it.
inline std::size_t available_memory() {
  std::size_t most = base::system::free_memory().value_or(std::numeric_limits<std::size_t>::max());
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = std::min(most, static_cast<std::size_t>(limit.rlim_cur));
  return most;
}

/// How much may be unpacked from `packed` bytes: `unpack_limit`; otherwise a quarter of the free memory, as
/// the bytes are copied while they grow, and at most what deflate can pack into that many bytes, 1032 times
/// as much plus rounding.
inline std::size_t most_unpacked(std::size_t packed, std::optional<std::size_t> unpack_limit = {}) {
  if (unpack_limit) return *unpack_limit;
  const std::size_t most = std::size_t{1} << 48;
  return std::min(available_memory() / 4, 1032 * std::min(packed, most) + (std::size_t{1} << 16));
}

namespace detail {

/// The end of an error message about the limit.
inline std::string limit_text(std::size_t most) {
  return std::to_string(most) +
         " bytes, the limit of what is unpacked, which unpack_limit or --unpack-limit SIZE sets; by default "
         "it is a quarter of the free memory";
}

}  // namespace detail

}  // namespace partita::io
