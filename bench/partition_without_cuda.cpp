// SPDX-License-Identifier: Apache-2.0
#include "support/partition_cases.hpp"

std::shared_ptr<void> bench::add_cuda_benchmarks(launcher&, const command&, const std::vector<graph>&) {
  throw error("this program was built without CUDA; use --device cpu");
}
