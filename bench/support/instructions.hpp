// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the kernels of a benchmark were measured with.

#include <cstddef>
#include <cstdio>

#include "partita/local/host/instructions.hpp"
#include "partita/local/host/prefetch_distance.hpp"

namespace bench {

/// On standard error, since tables are made of standard output.
inline void print_instructions() {
  using namespace partita::on_host;
  std::fprintf(stderr, "kernels of the host use %s (PARTITA_ISA), compiled for %s\n", name_of(instructions()),
               name_of(compiled_instructions));
}

/// On standard error, after the products, which find the distances.
inline void print_prefetch_distances() {
  std::fprintf(stderr, "rows of x are prefetched (PARTITA_PREFETCH)");
  for (const std::size_t bytes : {64, 128, 256, 512, 1024}) {
    const auto& search = partita::on_host::prefetch_search_of(bytes);
    std::fprintf(stderr, "%s %d entries ahead%s up to %zu bytes", bytes == 64 ? "" : ",", search.distance(),
                 search.found() ? "" : " (as usual)", bytes);
  }
  std::fprintf(stderr, "\n");
}

}  // namespace bench
