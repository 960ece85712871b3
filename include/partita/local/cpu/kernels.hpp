#pragma once
/// The kernels of the host: every function takes its queue first and uses at most `q.threads()` threads; no
/// result depends on their number.

#include "partita/local/cpu/aggregate.hpp"
#include "partita/local/cpu/edge_products.hpp"
#include "partita/local/cpu/edges.hpp"
#include "partita/local/cpu/elementwise.hpp"
#include "partita/local/cpu/gemm.hpp"
#include "partita/local/cpu/loss.hpp"
#include "partita/local/cpu/move.hpp"
#include "partita/local/cpu/reductions.hpp"
#include "partita/local/cpu/softmax.hpp"
#include "partita/local/cpu/spmm.hpp"
#include "partita/local/cpu/spmm_product.hpp"
#include "partita/memory/host.hpp"

namespace partita {

template <class Place>
struct kernels;

template <>
struct kernels<host> : cpu::spmm_kernels,
                       cpu::gemm_kernels,
                       cpu::move_kernels,
                       cpu::elementwise_kernels,
                       cpu::reduction_kernels,
                       cpu::softmax_kernels,
                       cpu::loss_kernels,
                       cpu::edge_kernels,
                       cpu::edge_product_kernels,
                       cpu::aggregate_kernels {
  template <class T>
  using spmm_product = cpu::spmm_product<T>;
};

}  // namespace partita
