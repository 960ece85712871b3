// SPDX-License-Identifier: Apache-2.0
#pragma once
// What nvcc puts into a program: device code for several architectures, of which the PTX is wanted here.
#include <string>

namespace emulator {

/// The text of the newest PTX in a fat binary, and its architecture; empty where there is none.
struct ptx_image {
  std::string text;
  int architecture = 0;
  std::string problem;  ///< why it cannot be read
};
ptx_image find_ptx(const void* fat_binary_wrapper);

}  // namespace emulator
