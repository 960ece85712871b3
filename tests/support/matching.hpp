// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maximum matchings of bipartite graphs, one augmenting path at a time.

#include <functional>
#include <utility>
#include <vector>

namespace test_support {

/// The number of edges of a maximum matching; columns_of[i]: the columns that row i is connected with.
inline std::int64_t maximum_matching(const std::vector<std::vector<int>>& columns_of, int columns) {
  std::vector<int> row_of(static_cast<std::size_t>(columns), -1);
  std::vector<char> seen;
  const std::function<bool(int)> augment = [&](int i) {
    for (const int column : columns_of[static_cast<std::size_t>(i)]) {
      const auto j = static_cast<std::size_t>(column);
      if (std::exchange(seen[j], 1) == 1) continue;
      if (row_of[j] >= 0 && !augment(row_of[j])) continue;
      row_of[j] = i;
      return true;
    }
    return false;
  };
  std::int64_t size = 0;
  for (int i = 0; i < static_cast<int>(columns_of.size()); ++i) {
    seen.assign(row_of.size(), 0);
    size += augment(i) ? 1 : 0;
  }
  return size;
}

}  // namespace test_support
