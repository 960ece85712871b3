// SPDX-License-Identifier: Apache-2.0
#pragma once
// The middle of what rounds took.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// The upper one of two that are in the middle; 0 if there are none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace bench
