#pragma once
/// Training at one place, in either precision, under every policy.

#include "partita/partition/policies.hpp"
#include "partita/train/trainer.hpp"
#include "run.hpp"

/// The named policy, on its nearest mesh, whose busiest rank would receive the fewest words. Every rank must
/// call.
template <class T, class Place>
arrangement cheapest(const partita::communicator& world, const partita::queue<Place>& queue,
                     const partita::dataset& data, const command& c) {
  arrangement best;
  partita::global_index fewest = -1;
  partita::for_each_policy([&](auto policy) {
    using policy_type = decltype(policy);
    const partita::mesh_shape shape = partita::default_mesh<policy_type>(world.size());
    const partita::mesh<Place> m(world, shape, queue);
    const auto words = partita::predict_words<T>(m, data, c.training, policy_type::name).max_rank;
    if (fewest >= 0 && words >= fewest) return;
    fewest = words;
    best = {policy_type::name, shape};
  });
  return best;
}

template <class T, class Place>
outcome train_in(const partita::communicator& world, const partita::queue<Place>& queue,
                 const std::optional<arrangement>& asked, const partita::dataset& data, const command& c,
                 const partita::epoch_observer& observe) {
  outcome o{asked ? *asked : cheapest<T>(world, queue, data, c), {}};
  const partita::mesh<Place> m(world, o.how.mesh, queue);
  o.result = partita::train_model<T>(m, data, c.training, o.how.policy, observe);
  return o;
}

/// Every rank must call.
template <class Place>
outcome train_at(const partita::communicator& world, const partita::queue<Place>& queue,
                 const std::optional<arrangement>& asked, const partita::dataset& data, const command& c,
                 const partita::epoch_observer& observe) {
  return c.precision == "f64" ? train_in<double>(world, queue, asked, data, c, observe)
                              : train_in<float>(world, queue, asked, data, c, observe);
}
