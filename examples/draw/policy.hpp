// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "partita/partition/policies.hpp"

namespace draw {

/// An SVG of who owns what under a policy, and of the stages of Y = A X on one rank.
std::string picture_of(const partita::policy& p);

/// An SVG of X in vertex_rows and under each policy, and of what moves between.
std::string picture_of_vertex_rows();

}  // namespace draw
