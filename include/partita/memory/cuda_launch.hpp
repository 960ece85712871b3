// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernel launch. A kernel is an object whose constexpr operator()(std::int64_t thread) does the work of one
/// thread. It runs on the device when compiled by nvcc with --expt-relaxed-constexpr, and on the host in
/// tests.

#ifndef __CUDACC__
#error "partita's kernels for CUDA are compiled by nvcc: name the source .cu, or set its LANGUAGE to CUDA"
#endif

#include <algorithm>
#include <cstdint>

#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

inline constexpr int launch_block = 256;

/// Minimum resident blocks per multiprocessor for `__launch_bounds__`: Body::min_blocks_per_multiprocessor if
/// declared; 0 lets the compiler decide. A larger value may cause register spills.
template <class Body>
constexpr int min_blocks_per_multiprocessor() {
  if constexpr (requires { Body::min_blocks_per_multiprocessor; })
    return Body::min_blocks_per_multiprocessor;
  else
    return 0;
}

template <class Body>
__global__ void __launch_bounds__(launch_block, min_blocks_per_multiprocessor<Body>())
    run_threads(Body body, std::int64_t threads) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; t < threads; t += stride)
    body(t);
}

/// body(warp, lane) for the 32 lanes of every warp, which are together when it is called.
template <class Body>
__global__ void __launch_bounds__(launch_block, min_blocks_per_multiprocessor<Body>())
    run_warps(Body body, std::uint32_t warps) {
  const unsigned mine = (blockIdx.x * launch_block + threadIdx.x) / 32;
  // In a uniform register, from which ptxas sees that lanes stay together.
  const unsigned warp = __shfl_sync(0xffffffffu, mine, 0);
  if (warp < warps) body(warp, static_cast<int>(threadIdx.x % 32));
}

/// Enqueues body(0), ..., body(threads - 1), in no particular order.
template <class Body>
void launch(const device_queue<cuda_device>& q, std::int64_t threads, const Body& body) {
  if (threads <= 0) return;
  constexpr std::int64_t most_blocks = 0x7fffffff;
  const std::int64_t blocks = std::min((threads + launch_block - 1) / launch_block, most_blocks);
  const device_guard guard(q.device());
  run_threads<<<static_cast<unsigned>(blocks), launch_block, 0, q.stream()>>>(body, threads);
  check_cuda(cudaGetLastError(), "a kernel's launch");
}

/// Enqueues body(warp, 0), ..., body(warp, 31) for every warp.
template <class Body>
void launch_warps(const device_queue<cuda_device>& q, std::int64_t warps, const Body& body) {
  if (warps <= 0) return;
  constexpr int warps_of_block = launch_block / 32;
  const auto blocks = static_cast<unsigned>((warps + warps_of_block - 1) / warps_of_block);
  const device_guard guard(q.device());
  run_warps<<<blocks, launch_block, 0, q.stream()>>>(body, static_cast<std::uint32_t>(warps));
  check_cuda(cudaGetLastError(), "a kernel's launch");
}

}  // namespace partita::on_cuda
