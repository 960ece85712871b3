// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"

std::vector<int> metis_parts_of(partita::global_index, std::span<const partita::io::edge>, int,
                                std::uint64_t) {
  throw partita::error("this program was built without METIS; install libmetis-dev and build again");
}
