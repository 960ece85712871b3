// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

split_counts predict_on_cuda(const partita::communicator&, const arrangement&, const prediction_task&,
                             const predict_command&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
