// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The claims of CAGNET, by source file.

#include "claim.hpp"

namespace bench::claims {

std::vector<claim> words_of_cagnet();
std::vector<claim> rows_of_cagnet();

}  // namespace bench::claims
