// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Starts kernels. A kernel is an object whose constexpr operator()(std::int64_t thread) does the work of one
/// thread: compiled by nvcc with --expt-relaxed-constexpr it runs on the device, and in tests anywhere.

#ifndef __CUDACC__
#error "partita's kernels for CUDA are compiled by nvcc: name the source .cu, or set its LANGUAGE to CUDA"
#endif

#include <algorithm>
#include <cstdint>

#include "partita/memory/cuda.hpp"

namespace partita::on_cuda {

inline constexpr int launch_block = 256;

/// So many blocks of a kernel are to find room on a multiprocessor: what its body asks for as
/// min_blocks_per_multiprocessor, or 0, which leaves it to the compiler. That may spill registers to make
/// room for more.
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

/// Enqueues body(0), ..., body(threads - 1) in no particular order.
template <class Body>
void launch(const device_queue<cuda_device>& q, std::int64_t threads, const Body& body) {
  if (threads <= 0) return;
  constexpr std::int64_t most_blocks = 0x7fffffff;
  const std::int64_t blocks = std::min((threads + launch_block - 1) / launch_block, most_blocks);
  const device_guard guard(q.device());
  run_threads<<<static_cast<unsigned>(blocks), launch_block, 0, q.stream()>>>(body, threads);
  check_cuda(cudaGetLastError(), "a kernel's launch");
}

}  // namespace partita::on_cuda
