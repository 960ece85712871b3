// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Files and folders that command lines name.

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "partita/base/error.hpp"

/// Whether --data names the graph that is built in, and no directory hides it.
inline bool is_built_in(const std::string& data) {
  return data == "karate" && !std::filesystem::exists(data);
}

/// Throws error unless a file can be written there; leaves none that was not there. Nothing for no path.
inline void require_writable(const std::string& path) {
  if (path.empty()) return;
  const bool existed = std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app)) throw partita::error("cannot write " + path);
  std::error_code ignored;  // another rank may have removed it
  if (!existed) std::filesystem::remove(path, ignored);
}
