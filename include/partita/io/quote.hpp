// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Formatting of error messages about files, including quoted file content.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "partita/base/error.hpp"

namespace partita::io {

/// `text`, truncated to 40 bytes, with nonprintable bytes shown as '?'.
inline std::string printable(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string shown(text.substr(0, longest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > longest ? shown + "..." : shown;
}

namespace detail {

/// The same in double quotes.
inline std::string quoted(std::string_view text) { return '"' + printable(text) + '"'; }

/// Throws input_error: `what` about the file `name`.
[[noreturn]] inline void fail(std::string_view name, const std::string& what) {
  throw input_error(std::string(name) + ": " + what);
}

/// The path as text. Throws input_error unless it is an existing regular file.
inline std::string name_of_file(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) fail(path.string(), "no such file");
  if (!std::filesystem::is_regular_file(path, status)) fail(path.string(), "is not a regular file");
  return path.string();
}

}  // namespace detail

}  // namespace partita::io
