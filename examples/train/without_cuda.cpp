// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

outcome train_on_cuda(const partita::communicator&, const std::optional<arrangement>&,
                      const partita::io::dataset&, const command&, const observers&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
