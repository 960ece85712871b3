// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The explicit instantiations of partita::compiled on the host, listed once for declarations and
/// definitions.

#include "partita/algebra/reproducible.hpp"
#include "partita/compiled/algebra_instances.hpp"
#include "partita/compiled/instances.hpp"

/// What partita::compiled has in precision T, within namespace partita. PREFIX: extern for declarations,
/// empty for definitions.
#define PARTITA_HOST_INSTANCES(PREFIX, T)                        \
  PARTITA_ALGEBRA_INSTANCES(PREFIX, T)                           \
  PREFIX template class algebra::exact_verbs<T, host>;           \
  PREFIX template class algebra::detail::exact_product<T, host>; \
  PREFIX template class algebra::exact_row_sums<T, host>;        \
  PREFIX template class algebra::ordered_attention<T, host>;     \
  PREFIX template class algebra::attention<T, host>;             \
  PREFIX template class nn::parameters<T, host>;                 \
  PREFIX template class nn::builder<T, host>;                    \
  PREFIX template class nn::optimizer<T, host>;                  \
  PREFIX template class nn::model<T, host>;                      \
  PREFIX template class nn::sequential<T, host>;                 \
  PREFIX template class nn::activation_layer<nn::relu, T, host>; \
  PREFIX template class nn::linear<T, host>;                     \
  PREFIX template class nn::gcn_conv<T, host>;                   \
  PREFIX template class nn::sage_conv<T, host>;                  \
  PREFIX template class graph::propagation_matrices<T, host>;    \
  PARTITA_TRAINING_INSTANCES(PREFIX, T, host)
