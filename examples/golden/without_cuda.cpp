// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

void compare_on_cuda(const partita::communicator&, const golden_command&, const std::vector<golden_case>&,
                     const case_observer&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
