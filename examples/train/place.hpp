// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training at one place, in either precision, under every policy.

#include <algorithm>
#include <functional>

#include "partita/partition/policies.hpp"
#include "partita/train/mini_batch_trainer.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "run.hpp"

/// Makes a mesh of all ranks at a place; every rank must call.
template <class Device>
using mesh_maker = std::function<partita::mesh<Device>(partita::mesh_shape)>;

/// Every policy on its nearest mesh, with its cost. The one chosen has the least product of words and bytes
/// of its busiest rank, the first of equals. Every rank must call.
template <class T, class Device>
std::vector<candidate> candidates_for(int ranks, const mesh_maker<Device>& make_mesh,
                                      const partita::io::dataset& data, const command& c) {
  std::vector<candidate> all;
  std::size_t best = 0;
  const auto product = [](const candidate& k) {
    return static_cast<double>(k.cost.words.max_rank + 1) * static_cast<double>(k.cost.bytes());
  };
  for (const partita::policy& p : partita::named_policies) {
    const partita::mesh_shape shape = partita::default_mesh(p, ranks);
    all.push_back({{std::string(p.name), shape}, std::string(same_policy(p, shape)), {}});
    if (!all.back().same_as.empty()) continue;
    all.back().cost = partita::nn::predict_cost<T>(make_mesh(shape), data, c.training, p);
    if (product(all.back()) < product(all[best])) best = all.size() - 1;
  }
  all[best].chosen = true;
  return all;
}

template <class T, class Device>
outcome train_in(int ranks, const mesh_maker<Device>& make_mesh, const std::optional<arrangement>& asked,
                 const partita::io::dataset& data, const command& c, const observers& tell) {
  outcome o;
  if (asked)
    o.how = *asked;
  else
    o.candidates = candidates_for<T>(ranks, make_mesh, data, c);
  for (const candidate& k : o.candidates) {
    o.setup_peak_bytes = std::max(o.setup_peak_bytes, k.cost.buffer_bytes.max_rank);
    if (k.chosen) o.how = k.how;
  }
  if (tell.begin) tell.begin(o);
  const bool on_stages = c.training.pipeline.stages > 0;
  const partita::mesh<Device> m = make_mesh(on_stages ? partita::mesh_shape{ranks, 1, 1} : o.how.mesh);
  m.queue().meter()->restart_peak();  // what candidates needed is no part of the run
  partita::nn::training_options options = c.training;
  options.mini_batch.sampling_threads = *c.threads;
  const partita::policy& p = partita::find_policy(o.how.policy);
  o.result = on_stages ? partita::nn::train_on_stages<T>(m, data, options, p, o.how.mesh, tell.epoch)
             : options.mini_batch.batch > 0
                 ? partita::nn::train_on_mini_batches<T>(m, data, options, p, tell.epoch)
                 : partita::nn::train_model<T>(m, data, options, p, tell.epoch);
  o.setup_peak_bytes = std::max(o.setup_peak_bytes, o.result.setup_peak_bytes.max_rank);
  return o;
}

/// Every rank must call.
template <class Device>
outcome train_at(int ranks, const mesh_maker<Device>& make_mesh, const std::optional<arrangement>& asked,
                 const partita::io::dataset& data, const command& c, const observers& tell) {
  return c.precision == "f64" ? train_in<double>(ranks, make_mesh, asked, data, c, tell)
                              : train_in<float>(ranks, make_mesh, asked, data, c, tell);
}
