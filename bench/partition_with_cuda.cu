// SPDX-License-Identifier: Apache-2.0
#include "../examples/ranks/cuda_device.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "support/partition_cases.hpp"

std::shared_ptr<void> bench::add_cuda_benchmarks(launcher& start, const command& asked,
                                                 const std::vector<graph>& graphs) {
  const auto make_queue = [comm = asked.comm](const communicator& world) { return cuda_queue(world, comm); };
  const auto all = std::make_shared<registry<partita::cuda_device>>(start, asked, make_queue);
  add_policies(*all, graphs);
  return all;
}
