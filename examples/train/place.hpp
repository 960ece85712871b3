// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training at one place, in either precision, under every policy.

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "checkpoints.hpp"
#include "partita/partition/policies.hpp"
#include "run.hpp"
#include "saving.hpp"

/// Makes a mesh of all ranks at a place; every rank must call.
template <class Device>
using mesh_maker = std::function<partita::mesh<Device>(partita::mesh_shape)>;

/// Gives a queue far memory, and measures what it moves in a second.
template <class Device>
using far_starter = std::function<partita::memory::far_rates(const partita::device_queue<Device>&,
                                                             const partita::far_options&)>;

/// Bounds the memory of a rank as --memory and --far say. Half of it is the window, and what has at least a
/// sixteenth of that is far.
template <class Device>
partita::memory::far_rates bound_memory(const partita::device_queue<Device>& queue,
                                        const far_starter<Device>& start_far, const command& c) {
  if (!c.memory) return {};
  queue.limit_memory(*c.memory);
  if (c.far.empty()) return {};
  const std::size_t window = *c.memory / 2;
  return start_far(queue,
                   {.store = c.far_store, .window = window, .from = std::max<std::size_t>(1, window / 16)});
}

/// The policies and meshes that `auto` stands for: one policy or every one, on its nearest mesh or on each
/// that it allows; with --far their buffers may be of any size. Every rank must call.
template <class T, class Device>
partita::nn::policy_choice chosen_by(const command& c, int ranks, const mesh_maker<Device>& make_mesh,
                                     const partita::io::dataset& data,
                                     const partita::nn::training_options& options) {
  if (c.memory && !partita::nn::is_counted<T, Device>(options))
    throw usage_error("--memory needs a --policy and a mesh for " + options.model +
                      ", since auto sets it up under every policy");
  partita::nn::policy_search from{.every_mesh = c.mesh == "auto", .threads = *c.threads};
  if (c.policy != "auto") from.policies = {partita::find_policy(c.policy)};
  if (c.far.empty()) from.most_bytes = c.memory;
  return partita::nn::choose_policy<T>(ranks, make_mesh, data, options, from);
}

template <class T, class Device>
outcome train_in(int ranks, const mesh_maker<Device>& make_mesh, const far_starter<Device>& start_far,
                 const std::optional<arrangement>& asked, const partita::io::dataset& data, const command& c,
                 const observers& tell) {
  outcome o;
  const auto begin = std::chrono::steady_clock::now();
  partita::nn::training_options options = c.training;
  options.mini_batch.sampling_threads = *c.threads;
  if (asked) {
    o.how = *asked;
  } else {
    partita::nn::policy_choice choice = chosen_by<T>(c, ranks, make_mesh, data, options);
    o.how = {std::string(choice.policy.name), choice.mesh};
    o.candidates = std::move(choice.candidates);
    options.symmetric = choice.symmetric;
  }
  for (const partita::nn::policy_candidate& k : o.candidates)
    o.setup_peak_bytes = std::max(o.setup_peak_bytes, k.cost.buffer_bytes.max_rank);
  if (tell.begin) tell.begin(o);
  const bool on_stages = c.training.pipeline.stages > 0;
  const partita::mesh<Device> m = make_mesh(on_stages ? partita::mesh_shape{ranks, 1, 1} : o.how.mesh);
  m.queue().meter()->restart_peak();  // what candidates needed is no part of the run
  m.ledger().clear();                 // nor the time in which they were distributed
  const partita::memory::far_rates rates = bound_memory(m.queue(), start_far, c);
  partita::nn::continuation<T> how = continuation_for<T>(c, data);
  if (!c.far.empty())
    how.forecast = [&tell, rates](const partita::far_forecast& f) {
      if (tell.forecast) tell.forecast(f, rates);
    };
  const partita::policy& p = partita::find_policy(o.how.policy);
  const auto training = partita::nn::make_training<T>(m, data, options, p, o.how.mesh);
  o.result = training->run(tell.epoch, how);
  write_trained(*training, data, c, m.rank() == 0);
  o.setup_peak_bytes = std::max(o.setup_peak_bytes, o.result.setup_peak_bytes.max_rank);
  // The slowest rank at distributing may have begun before this one.
  const std::chrono::duration<double> before_epochs = o.result.first_epoch - begin;
  o.plan_seconds = std::max(0.0, before_epochs.count() - o.result.distribute_seconds);
  return o;
}
