#pragma once
// The place cuda as a stage for kernels, on the stand-in's device.
#include <vector>

#include "partita/local/cuda/kernels.hpp"
#include "support/stage.hpp"

namespace test_support {

using partita::cuda;

/// One queue twice: its scratch memory is new the first time, and then used.
template <>
inline std::vector<partita::queue<cuda>> queues<cuda>() {
  const partita::queue<cuda> q;
  return {q, q};
}

}  // namespace test_support
