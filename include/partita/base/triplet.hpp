// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One entry of a sparse matrix, by global indices.

#include "partita/base/index.hpp"

namespace partita {

template <class T>
struct triplet {
  global_index row = 0;
  global_index col = 0;
  T value{};

  friend constexpr bool operator==(const triplet&, const triplet&) = default;
};

}  // namespace partita
