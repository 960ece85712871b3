// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Explicit instantiation declarations for partita::compiled_cuda: training in float and double on CUDA
/// devices. Sources that include this header and link that target do not need nvcc.

#include "partita/compiled/instances.hpp"
#include "partita/memory/cuda.hpp"

/// What partita::compiled_cuda has in precision T, within namespace partita. PREFIX: extern for declarations,
/// empty for definitions.
#define PARTITA_CUDA_INSTANCES(PREFIX, T)                                                                  \
  PREFIX template void nn::model<T, cuda_device>::backward(const matrix&, matrix*);                        \
  PREFIX template double algebra::cross_entropy(const dense<T, vertex_rows, cuda_device>&,                 \
                                                const algebra::vertex_labels<cuda_device>&,                \
                                                dense<T, vertex_rows, cuda_device>&);                      \
  PREFIX template double algebra::logistic_loss(const dense<T, vertex_rows, cuda_device>&,                 \
                                                const dense<T, vertex_rows, cuda_device>&, global_index,   \
                                                dense<T, vertex_rows, cuda_device>&);                      \
  PREFIX template std::vector<T> collect(const dense<T, vertex_rows, cuda_device>&, std::source_location); \
  PREFIX template dense<T, dynamic_layout, cuda_device> nn::initial_embedding<T>(                          \
      const mesh<cuda_device>&, layout, const blocking&, global_index, std::uint64_t);                     \
  PREFIX template nn::model<T, cuda_device> nn::convolutions<nn::gcn_conv>(                                \
      const sparse<T, dynamic_layout, cuda_device>&, const std::vector<global_index>&,                     \
      const nn::model_options&);                                                                           \
  PREFIX template nn::model<T, cuda_device> nn::convolutions<nn::sage_conv>(                               \
      const sparse<T, dynamic_layout, cuda_device>&, const std::vector<global_index>&,                     \
      const nn::model_options&);                                                                           \
  PREFIX template nn::model<T, cuda_device> nn::convolutions<nn::sage_max_conv>(                           \
      const sparse<T, dynamic_layout, cuda_device>&, const std::vector<global_index>&,                     \
      const nn::model_options&);                                                                           \
  PREFIX template nn::model<T, cuda_device> nn::gat(const nn::layer_matrices<T, cuda_device>&,             \
                                                    const std::vector<global_index>&, int, int,            \
                                                    const nn::builder<T, cuda_device>&);                   \
  PARTITA_TRAINING_INSTANCES(PREFIX, T, cuda_device)

namespace partita {

PARTITA_CUDA_INSTANCES(extern, float)
PARTITA_CUDA_INSTANCES(extern, double)

}  // namespace partita
