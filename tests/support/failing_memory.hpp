// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that is refused: an allocation of operator new, by its number, and a buffer of a budget. Programs
// that use it are linked with failing_memory.cpp.

#include <new>

#include "partita/memory/device.hpp"

namespace test_support {

/// While one lives, the allocation of operator new on this thread with this number, from 0, fails.
class failing_allocation {
 public:
  explicit failing_allocation(long number);
  failing_allocation(const failing_allocation&) = delete;
  failing_allocation& operator=(const failing_allocation&) = delete;
  ~failing_allocation();
  static bool has_failed();
};

/// Calls act(number of the allocation that fails) until none does; how many do.
template <class Act>
long fail_every_allocation(const Act& act) {
  for (long number = 0;; ++number)
    if (!act(number)) return number;
}

/// While one lives, this thread counts its buffers; the one with this number, from 0, exceeds the budget of
/// the meter, as all do that follow.
class failing_meter {
 public:
  failing_meter(partita::memory::memory_meter& meter, long number);
  failing_meter(const failing_meter&) = delete;
  failing_meter& operator=(const failing_meter&) = delete;
  ~failing_meter();
};

}  // namespace test_support
