// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is said of a wait that has lasted longer than its time limit.

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "partita/base/error.hpp"

namespace partita::comm::detail {

/// "2 s" or "200 ms".
inline std::string text_of(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// "rank 1" or "ranks 1, 4, 5".
inline std::string text_of_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// " of group row", or nothing for a group without a name.
inline std::string text_of_group(std::string_view axis) {
  return axis.empty() ? "" : " of group " + std::string(axis);
}

/// "rank 0 has waited for more than 2 s for ranks 1, 4 in all_reduce of f64 (spmm.hpp:120) of group row".
inline std::string late(int rank, std::chrono::milliseconds limit, std::span<const int> absent,
                        const std::string& where) {
  return base::sentence_of({"rank ", rank, " has waited for more than ", text_of(limit), " for ",
                            text_of_ranks(absent), " in ", where});
}

}  // namespace partita::comm::detail
