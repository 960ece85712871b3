// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "../ranks/dense_products.hpp"
#include "../ranks/precision.hpp"
#include "partita/algebra/reproducible.hpp"
#include "place.hpp"

outcome train_on_cpu(const partita::communicator& world, const std::optional<arrangement>& asked,
                     const partita::io::dataset& data, const command& c, const observers& tell) {
  const partita::device_queue<partita::host> threads(*c.threads, dense_products());
  const partita::device_queue<partita::host> queue = c.reproducible ? reproducible(threads) : threads;
  const mesh_maker<partita::host> make_mesh = [&](partita::mesh_shape shape) {
    return partita::mesh<partita::host>(world, shape, queue);
  };
  const auto start_far = [](const auto& q, const partita::far_options& options) {
    use_far(q, options);
    return partita::memory::measured_far_rates(q);
  };
  return in_precision(c.precision, [&](auto zero) {
    return train_in<decltype(zero), partita::host>(world.size(), make_mesh, start_far, asked, data, c, tell);
  });
}
