// SPDX-License-Identifier: Apache-2.0
#ifdef PARTITA_WITH_CUDA
#include "partita/compiled/cuda.hpp"

#include "../ranks/compiled.hpp"
#include "../ranks/cuda_device.hpp"
#include "../ranks/precision.hpp"
#include "place.hpp"

outcome train_on_cuda(const job& j) {
  const partita::device_queue<partita::cuda_device> queue = cuda_queue(j.world, j.c.comm, j.c.tf32);
  if (j.c.no_graphs) queue.extend(std::make_shared<partita::on_cuda::without_graphs>());
  const partita::communicator ranks = cuda_world(j.world, queue, j.c.comm, time_limit(j.c.timeout));
  const mesh_maker<partita::cuda_device> make_mesh = [&](partita::mesh_shape shape) {
    return cuda_mesh(ranks, shape, queue);
  };
  return in_precision(j.c.precision, [&](auto zero) {
    return train_in<decltype(zero), partita::cuda_device>(j, make_mesh, use_pinned);
  });
}
#else
#include "run.hpp"

outcome train_on_cuda(const job&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
#endif
