// SPDX-License-Identifier: Apache-2.0
#ifdef PARTITA_WITH_CUDA
#include "partita/compiled/cuda.hpp"

#include "../ranks/cuda_device.hpp"
#include "place.hpp"

void compare_on_cuda(const partita::communicator& world, const golden_command& c,
                     const std::vector<golden_case>& cases, const case_observer& observe) {
  const partita::device_queue<partita::cuda_device> queue = cuda_queue(world, c.comm);
  const partita::communicator ranks = cuda_world(world, queue, c.comm);
  compare_at(cuda_mesh(ranks, mesh_of(c, ranks.size()), queue), c, cases, observe);
}
#else
#include "run.hpp"

void compare_on_cuda(const partita::communicator&, const golden_command&, const std::vector<golden_case>&,
                     const case_observer&) {
  throw partita::error("this program was built without CUDA; use --device cpu");
}
#endif
