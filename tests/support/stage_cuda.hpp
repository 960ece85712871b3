// SPDX-License-Identifier: Apache-2.0
#pragma once
// The place cuda as a stage for kernels.

#include "partita/local/cuda/kernels.hpp"
#include "support/stage.hpp"

namespace test_support {

using partita::cuda_device;

/// One queue twice: its scratch memory is new the first time, and then used.
template <>
inline std::vector<partita::device_queue<cuda_device>> queues<cuda_device>() {
  const partita::device_queue<cuda_device> q;
  return {q, q};
}

}  // namespace test_support
