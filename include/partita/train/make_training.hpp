// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training of a model by name, in whatever way its options say.

#include <memory>

#include "partita/train/link_trainer.hpp"
#include "partita/train/mini_batch_trainer.hpp"
#include "partita/train/pipeline_trainer.hpp"

namespace partita::nn {

/// Training of the model named by `options` on the whole graph, in mini-batches or over stages, as these say;
/// on the whole graph for its links, where these are the task of the data.
/// `p`: the policy; of mini-batches, that of the evaluation on the whole graph. `inside`: the mesh of a stage
/// where there are stages; m is used for its ranks then. `data` must outlive it. Collective over the mesh,
/// with the same data on every rank. What travels and exceptions: see trainer, mini_batch_trainer and
/// pipeline_trainer; also mesh_error when the mesh does not suit the policy.
template <class T, class Device>
std::unique_ptr<training<T, Device>> make_training(const mesh<Device>& m, const io::dataset& data,
                                                   const training_options& options, const policy& p,
                                                   mesh_shape inside = {}) {
  if (data.task == io::task::links) {
    require_mesh(p, m.shape(), m.size());
    return std::make_unique<link_trainer<T, Device>>(m, data, options, p);
  }
  if (options.pipeline.stages > 0)
    return std::make_unique<pipeline_trainer<T, Device>>(m, data, options, p, inside);
  require_mesh(p, m.shape(), m.size());
  if (options.mini_batch.batch > 0)
    return std::make_unique<mini_batch_trainer<T, Device>>(m, data, options, p);
  return std::make_unique<trainer<T, Device>>(m, data, options, make_model<T>(m, data, options, p));
}

/// Makes such a training, and runs it. Collective over the mesh. What travels and exceptions: see
/// make_training and training::run.
template <class T, class Device>
training_result train(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                      const policy& p, mesh_shape inside = {}, const epoch_observer& observe = {},
                      const run_hooks<T>& how = {}) {
  return make_training<T>(m, data, options, p, inside)->run(observe, how);
}

}  // namespace partita::nn
