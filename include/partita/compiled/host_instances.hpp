// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The explicit instantiations of partita::compiled on the host, listed once for declarations and
/// definitions.

#include "partita/algebra/reproducible.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/instances.hpp"
#include "partita/memory/host_far.hpp"

/// What partita::compiled has in precision T, within namespace partita. PREFIX: extern for declarations,
/// empty for definitions.
#define PARTITA_HOST_INSTANCES(PREFIX, T)                                                              \
  PREFIX template void threads::detail::run_ranks<void>(                                               \
      int, const std::function<void(const communicator&)>&, const options&);                           \
  PREFIX template class local::far_passes<host>;                                                       \
  PREFIX template class dense<T, vertex_rows, host>;                                                   \
  PREFIX template class dense<T, replicated, host>;                                                    \
  PREFIX template class dense<T, dynamic_layout, host>;                                                \
  PREFIX template class sparse<T, dynamic_layout, host>;                                               \
  PREFIX template std::pair<transfer::detail::shared_tiles<T, host>,                                   \
                            transfer::detail::shared_tiles<T, host>>                                   \
  transfer::detail::distribute_tiles(const mesh<host>&, layout, const blocking&, const blocking&,      \
                                     const std::span<const triplet<T>>&, symmetry, transfer::sharing); \
  PREFIX template void on_host::multiply_factors(const device_queue<host>&, T);                        \
  PREFIX template class algebra::detail::product_plan<T, host>;                                        \
  PREFIX template class algebra::detail::product_stages<T, host>;                                      \
  PREFIX template class spmm_plan<T, host>;                                                            \
  PREFIX template class algebra::exact_verbs<T, host>;                                                 \
  PREFIX template class algebra::detail::exact_product<T, host>;                                       \
  PREFIX template class algebra::exact_row_sums<T, host>;                                              \
  PREFIX template class algebra::ordered_attention<T, host>;                                           \
  PREFIX template class redistribution<T, host>;                                                       \
  PREFIX template class gemm_plan<T, host>;                                                            \
  PREFIX template class nn::attention<T, host>;                                                        \
  PREFIX template class nn::parameters<T, host>;                                                       \
  PREFIX template class nn::builder<T, host>;                                                          \
  PREFIX template class nn::adam<T, host>;                                                             \
  PREFIX template class nn::model<T, host>;                                                            \
  PREFIX template class nn::sequential<T, host>;                                                       \
  PREFIX template class nn::activation_layer<nn::relu, T, host>;                                       \
  PREFIX template class nn::linear<T, host>;                                                           \
  PREFIX template class nn::gcn_conv<T, host>;                                                         \
  PREFIX template class nn::sage_conv<T, host>;                                                        \
  PREFIX template class nn::graph_operators<T, host>;                                                  \
  PARTITA_TRAINING_INSTANCES(PREFIX, T, host)
