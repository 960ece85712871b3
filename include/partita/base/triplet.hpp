// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Coordinate-format (COO) entries.

#include "partita/base/index.hpp"

namespace partita {

/// One entry of a sparse matrix, with global indices.
template <class T>
struct triplet {
  global_index row = 0;
  global_index col = 0;
  T value{};

  friend constexpr bool operator==(const triplet&, const triplet&) = default;
};

}  // namespace partita
