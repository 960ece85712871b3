// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training at one place, in either precision, under every policy.

#include <algorithm>
#include <functional>

#include "partita/partition/policies.hpp"
#include "partita/train/trainer.hpp"
#include "run.hpp"

/// Makes a mesh of all ranks at a place; every rank must call.
template <class Device>
using mesh_maker = std::function<partita::mesh<Device>(partita::mesh_shape)>;

/// The policy, on its nearest mesh, whose busiest rank would receive the fewest words. Every rank must call.
template <class T, class Device>
arrangement cheapest(int ranks, const mesh_maker<Device>& make_mesh, const partita::io::dataset& data,
                     const command& c) {
  arrangement best;
  partita::global_index fewest = -1;
  for (const partita::policy& p : partita::named_policies) {
    const partita::mesh<Device> m = make_mesh(partita::default_mesh(p, ranks));
    const auto words = partita::nn::predict_words<T>(m, data, c.training, p).max_rank;
    if (fewest >= 0 && words >= fewest) continue;
    fewest = words;
    best = {std::string(p.name), m.shape()};
  }
  return best;
}

template <class T, class Device>
outcome train_in(int ranks, const mesh_maker<Device>& make_mesh, const std::optional<arrangement>& asked,
                 const partita::io::dataset& data, const command& c,
                 const partita::nn::epoch_observer& observe) {
  outcome o{asked ? *asked : cheapest<T>(ranks, make_mesh, data, c), {}};
  const partita::mesh<Device> m = make_mesh(o.how.mesh);
  partita::memory_meter& meter = *m.queue().meter();
  const auto trials =
      partita::nn::summarize(m.world(), static_cast<partita::global_index>(meter.peak())).max_rank;
  meter.restart_peak();  // what candidates needed is no part of the run
  o.result = partita::nn::train_model<T>(m, data, c.training, partita::find_policy(o.how.policy), observe);
  o.setup_peak_bytes = std::max(trials, o.result.setup_peak_bytes.max_rank);
  return o;
}

/// Every rank must call.
template <class Device>
outcome train_at(int ranks, const mesh_maker<Device>& make_mesh, const std::optional<arrangement>& asked,
                 const partita::io::dataset& data, const command& c,
                 const partita::nn::epoch_observer& observe) {
  return c.precision == "f64" ? train_in<double>(ranks, make_mesh, asked, data, c, observe)
                              : train_in<float>(ranks, make_mesh, asked, data, c, observe);
}
