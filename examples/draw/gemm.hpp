// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace draw {

/// An SVG of the cube of i, j and k cut by a grid, of who owns what of A, B and C on its faces, and of what
/// one rank multiplies.
std::string picture_of_gemm();

}  // namespace draw
