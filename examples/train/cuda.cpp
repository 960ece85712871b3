// SPDX-License-Identifier: Apache-2.0
#ifdef PARTITA_WITH_CUDA
#include "partita/compiled/cuda.hpp"

#include "../ranks/cuda_device.hpp"
#include "../ranks/precision.hpp"
#include "place.hpp"

outcome train_on_cuda(const partita::communicator& world, const std::optional<arrangement>& asked,
                      const partita::io::dataset& data, const command& c, const observers& tell) {
  const partita::device_queue<partita::cuda_device> queue = cuda_queue(world, c.comm);
  const partita::communicator ranks = cuda_world(world, queue, c.comm, time_limit(c.timeout));
  const mesh_maker<partita::cuda_device> make_mesh = [&](partita::mesh_shape shape) {
    return cuda_mesh(ranks, shape, queue);
  };
  return in_precision(c.precision, [&](auto zero) {
    return train_in<decltype(zero), partita::cuda_device>(world.size(), make_mesh, use_pinned, asked, data, c,
                                                          tell);
  });
}
#else
#include "run.hpp"

outcome train_on_cuda(const partita::communicator&, const std::optional<arrangement>&,
                      const partita::io::dataset&, const command&, const observers&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
#endif
