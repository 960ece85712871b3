// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of text.
#include <optional>
#include <string>

#include "fuzz/readers.hpp"
#include "partita/io/checksum.hpp"

namespace fuzz {

/// Calls read(threads) with one thread, and for some inputs with three, which must come to the same: the
/// same complaint, or results that same(one, three) finds equal.
void read_by_threads(input bytes, const auto& read, const auto& same) {
  std::string complaint;
  const auto attempt = [&](int threads) -> std::optional<decltype(read(1))> {
    complaint.clear();
    try {
      return read(threads);
    } catch (const partita::input_error& e) {
      complaint = e.what();
      return {};
    }
  };
  const auto one = attempt(1);
  if (partita::io::crc32c(bytes) % 16 != 0) return;  // threads take long to start
  const std::string first = complaint;
  const auto three = attempt(3);
  require(complaint == first, "the complaint depends on the number of threads");
  require(!one || same(*one, *three), "the result depends on the number of threads");
}

}  // namespace fuzz
