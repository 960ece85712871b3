// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls, for the target that PARTITA_FUZZ_TARGET names.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fuzz/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::named_target& mine =
      *std::ranges::find(fuzz::targets(), std::string_view(PARTITA_FUZZ_TARGET),
                         [](const fuzz::named_target& each) { return std::string_view(each.name); });
  fuzz::check(mine.read, std::as_bytes(std::span(data, size)), mine.size(size));
  return 0;
}
