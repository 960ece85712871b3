// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The explicit instantiations of partita::compiled that programs without layers need, listed once for
/// declarations and definitions. A list is a macro, since no template can declare an instantiation.

#include "partita/algebra/gemm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/comm/threads.hpp"
#include "partita/memory/host_far.hpp"
#include "partita/transfer/distribute.hpp"

/// Matrices, their products and exchanges in precision T, within namespace partita. PREFIX: extern for
/// declarations, empty for definitions.
#define PARTITA_ALGEBRA_INSTANCES(PREFIX, T)                                                           \
  PREFIX template void threads::run<void>(int, const std::function<void(const communicator&)>&,        \
                                          const options&);                                             \
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
  PREFIX template class redistribution<T, host>;                                                       \
  PREFIX template class gemm_plan<T, host>;
