// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queues that sum in either way.

#include "partita/algebra/reproducible.hpp"

namespace test_support {

enum class summation : std::uint8_t { fast, reproducible };

inline partita::device_queue<partita::host> summing(summation how, int threads = 1) {
  const partita::device_queue<partita::host> q(threads);
  return how == summation::fast ? q : reproducible(q);
}

}  // namespace test_support
