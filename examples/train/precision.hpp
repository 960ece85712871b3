#pragma once
/// The training of one precision under every policy; instantiated in f32.cpp and f64.cpp.

#include "partita/partition/policies.hpp"
#include "partita/train/trainer.hpp"
#include "run.hpp"

template <class T>
arrangement cheapest(const partita::communicator& world, const partita::queue<partita::host>& queue,
                     const partita::dataset& data, const command& c) {
  arrangement best;
  partita::global_index fewest = -1;
  partita::for_each_policy([&](auto policy) {
    using policy_type = decltype(policy);
    const partita::mesh_shape shape = partita::default_mesh<policy_type>(world.size());
    const partita::mesh<partita::host> m(world, shape, queue);
    const auto words = partita::predict_words<T, policy_type>(m, data, c.training).max_rank;
    if (fewest >= 0 && words >= fewest) return;
    fewest = words;
    best = {policy_type::name, shape};
  });
  return best;
}

template <class T>
partita::training_result train(const partita::communicator& world, const partita::queue<partita::host>& queue,
                               const arrangement& how, const partita::dataset& data, const command& c,
                               const partita::epoch_observer& observe) {
  partita::training_result result;
  partita::visit_policy(how.policy, [&](auto policy) {
    const partita::mesh<partita::host> m(world, how.mesh, queue);
    result = partita::train_model<T, decltype(policy)>(m, data, c.training, observe);
  });
  return result;
}
