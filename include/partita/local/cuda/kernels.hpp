#pragma once
/// The kernels of CUDA devices: every function takes its queue first and enqueues its work there; those that
/// return a number wait for it. All memory is the device's. Bodies of kernels are constexpr objects that know
/// nothing of a device; no result depends on how many threads there are or on which of them is first. Beside
/// what a function says of itself, it throws device_error when a call of the runtime fails.

#include "partita/local/cuda/aggregate.hpp"
#include "partita/local/cuda/edge_products.hpp"
#include "partita/local/cuda/edges.hpp"
#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/gemm.hpp"
#include "partita/local/cuda/loss.hpp"
#include "partita/local/cuda/move.hpp"
#include "partita/local/cuda/reductions.hpp"
#include "partita/local/cuda/softmax.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/spmm_product.hpp"
#include "partita/memory/cuda.hpp"

namespace partita {

template <class Place>
struct kernels;

template <>
struct kernels<cuda_device> : gpu::spmm_kernels,
                              gpu::gemm_kernels,
                              gpu::move_kernels,
                              gpu::elementwise_kernels,
                              gpu::reduction_kernels,
                              gpu::softmax_kernels,
                              gpu::loss_kernels,
                              gpu::edge_kernels,
                              gpu::edge_product_kernels,
                              gpu::aggregate_kernels {
  template <class T>
  using spmm_product = gpu::spmm_product<T>;
};

}  // namespace partita
