// SPDX-License-Identifier: Apache-2.0
#ifdef PARTITA_WITH_CUDA
#include "partita/compiled/cuda.hpp"

#include "../ranks/cuda_device.hpp"
#include "place.hpp"

split_counts predict_on_cuda(const partita::communicator& world, const arrangement& how,
                             const prediction_task& task, const predict_command& c) {
  const partita::device_queue<partita::cuda_device> queue = cuda_queue(world, c.comm);
  const partita::communicator ranks = cuda_world(world, queue, c.comm, time_limit(c.timeout));
  return predict_at(cuda_mesh(ranks, how.mesh, queue), task, c);
}
#else
#include "run.hpp"

split_counts predict_on_cuda(const partita::communicator&, const arrangement&, const prediction_task&,
                             const predict_command&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
#endif
