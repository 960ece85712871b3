// SPDX-License-Identifier: Apache-2.0
#pragma once
// A host that touches device memory dies by SIGSEGV; one line says before why.
#include <mutex>

#include "arena.hpp"

namespace emulator {

/// For as long as the program runs. What handled the signal before does so afterwards.
void explain_touches_of_the_host(const device_arena& arena, std::mutex& mutex);

}  // namespace emulator
