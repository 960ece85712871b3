// SPDX-License-Identifier: Apache-2.0
#include "../ranks/compiled.hpp"
#include "../ranks/dense_products.hpp"
#include "../ranks/precision.hpp"
#include "ordering.hpp"
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

nn::policy_choice choose_on(const partita::emulated::machine* on, const plan_search& from,
                            const partita::communicator& world, const io::dataset& data, const command& c) {
  mesh_maker<partita::host> make_mesh = [&](partita::mesh_shape shape) {
    return partita::mesh<partita::host>(world, shape, partita::device_queue<partita::host>(1));
  };
  if (on != nullptr) make_mesh = nn::meshes_on<partita::host>(world, *on);
  return in_precision(c.precision, [&](auto zero) {
    using T = decltype(zero);
    if (from.stages > 0) {
      nn::stage_search stages{{from.stages}, from.stage_chunks, from.policies};
      if (c.cuts_chunks())
        stages.chunk_of = [&](const nn::pipeline_options& how, partita::mesh_shape inside) {
          command cut = c;
          cut.training.pipeline = how;
          cut_chunks(data, cut, inside, world);
          return cut.training.pipeline.chunk_of;
        };
      return nn::choose_stages<T>(world.size(), make_mesh, data, c.training, stages);
    }
    if (c.in_batches())
      return nn::choose_placement<T>(world.size(), make_mesh, data, c.training, from.policies);
    return nn::choose_policy<T>(world.size(), make_mesh, data, c.training, from.policies);
  });
}
