// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the kernels of a benchmark were measured with.

#include <cstdio>

#include "partita/local/host/instructions.hpp"

namespace bench {

/// On standard error, since tables are made of standard output.
inline void print_instructions() {
  using namespace partita::on_host;
  std::fprintf(stderr, "kernels of the host use %s (PARTITA_ISA), compiled for %s\n", name_of(instructions()),
               name_of(compiled_instructions));
}

}  // namespace bench
