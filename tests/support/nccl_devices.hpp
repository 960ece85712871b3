// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks over NCCL that are threads with a device each.

#include "laws/communicator_laws.hpp"
#include "partita/comm/nccl.hpp"
#include "support/device_fixture.hpp"
#include "support/ranks.hpp"

namespace test_support {

inline const partita::nccl::options unchecked{.time_limit = std::chrono::minutes(1), .checked = false};

/// body(world, queue) on as many threads.
void on_nccl_devices(int ranks, const partita::nccl::options& o, auto body) {
  on_threads(ranks, [&](const partita::communicator& c) {
    const partita::device_queue<partita::cuda_device> q(c.rank());
    body(partita::nccl::world(c, q, o), q);
  });
  cudaSetDevice(0);
}

inline std::vector<partita::global_index> equal_counts(int ranks, partita::global_index n) {
  return std::vector<partita::global_index>(static_cast<std::size_t>(ranks), n);
}

}  // namespace test_support
