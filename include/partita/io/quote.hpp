#pragma once
/// How text out of a file is shown inside an error message.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace partita::io::detail {

/// `text` in double quotes, at most 40 bytes of it, each byte that is not printable ASCII shown as '?'.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string shown(text.substr(0, longest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + shown + (text.size() > longest ? "...\"" : "\"");
}

}  // namespace partita::io::detail
