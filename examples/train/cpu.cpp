// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "../ranks/dense_products.hpp"
#include "../ranks/precision.hpp"
#include "partita/algebra/reproducible.hpp"
#include "place.hpp"

outcome train_on_cpu(const job& j) {
  const partita::device_queue<partita::host> threads(*j.c.threads, dense_products());
  const partita::device_queue<partita::host> own = j.c.reproducible ? reproducible(threads) : threads;
  const bool charges = j.c.machine && j.c.machine->kernels;
  const auto queue = charges ? partita::emulated::charged(j.world, own) : own;
  const mesh_maker<partita::host> make_mesh = [&](partita::mesh_shape shape) {
    return partita::mesh<partita::host>(j.world, shape, queue);
  };
  const auto start_far = [](const auto& q, const partita::far_options& options) {
    use_far(q, options);
    return partita::memory::measured_far_rates(q);
  };
  return in_precision(j.c.precision, [&](auto zero) {
    return train_in<decltype(zero), partita::host>(j, make_mesh, start_far);
  });
}
