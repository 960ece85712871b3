#pragma once
// Stands in for partita/memory/cuda_launch.hpp: the same kernels' bodies, one thread after another, when the
// stream gets there. Threads run in an order that is not ascending, so that what depends on it shows.
//
// What this cannot show: races between threads that give the right result in this one order; registers,
// shared memory and blocks; code that only nvcc refuses.
#include <cstdint>
#include <type_traits>

#include "partita/memory/cuda.hpp"

namespace partita::detail {

inline constexpr int launch_block = 256;

/// Enqueues body(0), ..., body(threads - 1) in no particular order.
template <class Body>
void launch(const queue<cuda>& q, std::int64_t threads, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>, "a kernel's body travels to the device as bytes");
  if (threads <= 0) return;
  stand_in::launch(q.stream(), [body, threads] {
    constexpr std::int64_t stride = 37;
    for (std::int64_t residue = 0; residue < stride && residue < threads; ++residue)
      for (std::int64_t t = (threads - 1 - residue) / stride * stride + residue; t >= 0; t -= stride) body(t);
  });
  check_cuda(cudaGetLastError(), "a kernel's launch");
}

}  // namespace partita::detail
