// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The claims of NeutronTP, by source file.

#include "claim.hpp"

namespace bench::claims {

std::vector<claim> words_of_neutrontp();
std::vector<claim> training_of_neutrontp();
outcome over_data_parallel();

}  // namespace bench::claims
