// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The explicit instantiations that hosts and CUDA devices have in common, listed once for declarations and
/// definitions. A list is a macro, since no template can declare an instantiation.

#include "partita/train/make_training.hpp"
#include "partita/train/policy_cost.hpp"
#include "partita/train/predictor.hpp"

/// Training in precision T on DEVICE, within namespace partita. PREFIX: extern for declarations, empty for
/// definitions.
#define PARTITA_TRAINING_INSTANCES(PREFIX, T, DEVICE)                                                       \
  PREFIX template std::vector<nn::named_model<T, DEVICE>>& nn::detail::known_models();                      \
  PREFIX template const nn::named_model<T, DEVICE>& nn::find_model<T>(const nn::training_options&);         \
  PREFIX template class nn::training<T, DEVICE>;                                                            \
  PREFIX template class nn::trainer<T, DEVICE>;                                                             \
  PREFIX template class nn::link_decoder<T, DEVICE>;                                                        \
  PREFIX template class nn::link_trainer<T, DEVICE>;                                                        \
  PREFIX template std::vector<double> nn::scores_of_pairs(const nn::link_decoder<T, DEVICE>&,               \
                                                          const dense<T, vertex_rows, DEVICE>&,             \
                                                          std::span<const io::edge>, std::size_t);          \
  PREFIX template nn::model<T, DEVICE> nn::make_model<T>(const mesh<DEVICE>&, const io::dataset&,           \
                                                         const nn::training_options&, const policy&, bool); \
  PREFIX template nn::training_result nn::train_model(const mesh<DEVICE>&, const io::dataset&,              \
                                                      const nn::training_options&, nn::model<T, DEVICE>,    \
                                                      const nn::epoch_observer&, const nn::run_hooks<T>&);  \
  PREFIX template nn::training_result nn::train_model<T>(                                                   \
      const mesh<DEVICE>&, const io::dataset&, const nn::training_options&, const policy&,                  \
      const nn::epoch_observer&, const nn::run_hooks<T>&);                                                  \
  PREFIX template class nn::mini_batch_trainer<T, DEVICE>;                                                  \
  PREFIX template class nn::pipeline_trainer<T, DEVICE>;                                                    \
  PREFIX template class nn::predictor<T, DEVICE>;                                                           \
  PREFIX template std::vector<T> nn::values_on_first_rank(const dense<T, vertex_rows, DEVICE>&);            \
  PREFIX template std::unique_ptr<nn::training<T, DEVICE>> nn::make_training<T>(                            \
      const mesh<DEVICE>&, const io::dataset&, const nn::training_options&, const policy&, mesh_shape);     \
  PREFIX template nn::training_result nn::train<T>(const mesh<DEVICE>&, const io::dataset&,                 \
                                                   const nn::training_options&, const policy&, mesh_shape,  \
                                                   const nn::epoch_observer&, const nn::run_hooks<T>&);     \
  PREFIX template nn::max_and_total nn::predict_words<T>(const mesh<DEVICE>&, const io::dataset&,           \
                                                         const nn::training_options&, const policy&);       \
  PREFIX template bool nn::is_counted<T, DEVICE>(const nn::training_options&);                              \
  PREFIX template nn::policy_cost nn::predict_cost<T>(const mesh<DEVICE>&, graph::edge_counts&,             \
                                                      const nn::training_options&, const policy&);          \
  PREFIX template nn::policy_cost nn::predict_cost<T>(const mesh<DEVICE>&, const io::dataset&,              \
                                                      const nn::training_options&, const policy&);
