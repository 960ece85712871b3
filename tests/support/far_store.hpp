// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where tests put far memory.

#include <filesystem>
#include <memory>
#include <system_error>

#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"

namespace test_support {

/// A store in memory where there is a GiB of it, else on the disk, whose writing takes most of the time of
/// many small blocks.
inline std::shared_ptr<partita::mapped_store> new_far_store() {
  std::error_code missing;
  const std::filesystem::path in_memory = "/dev/shm";
  const auto space = std::filesystem::space(in_memory, missing);
  const bool fits =
      !missing && space.available != static_cast<std::uintmax_t>(-1) && space.available >> 30 > 0;
  return std::make_shared<partita::mapped_store>(fits ? in_memory : std::filesystem::temp_directory_path());
}

}  // namespace test_support
