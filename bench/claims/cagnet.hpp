// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The claims of CAGNET, by source file.

#include <array>

#include "claim.hpp"

namespace bench::claims {

/// What 1.5D with c = q receives in a product on q^2 ranks, by ledger, over 2D with A moving, and staying.
std::array<double, 2> words_over_2d(int q);
std::vector<claim> words_of_cagnet();
std::vector<claim> rows_of_cagnet();

}  // namespace bench::claims
