// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files and folders that command lines name.

#include <filesystem>
#include <string>
#include <system_error>

#include "partita/io/whole_file.hpp"

/// Whether --data names the graph that is built in, and no directory hides it.
inline bool is_built_in(const std::string& data) {
  std::error_code ignored;
  return data == "karate" && !std::filesystem::exists(data, ignored);
}

/// Throws error unless a file can be written there; leaves none that was not there. Nothing for no path.
inline void require_writable(const std::string& path) {
  if (!path.empty()) partita::io::require_writable_file(path);
}
