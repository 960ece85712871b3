// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training at one place, in either precision, under every policy.

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "../ranks/precision.hpp"
#include "checkpoints.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/graph_data.hpp"
#include "partita/train/policy_cost.hpp"
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

/// The policies and meshes that `auto` stands for, with their costs: one policy or every one, on its nearest
/// mesh or on each that it allows. The one chosen has the least product of words and bytes of its busiest
/// rank, the first of equals, of those whose buffers --memory allows, or of all with --far. Notes in
/// `options` whether the graph is symmetric, if that was asked. Every rank must call. Throws budget_error
/// where none fits.
template <class T, class Device>
std::vector<candidate> candidates_for(int ranks, const mesh_maker<Device>& make_mesh,
                                      const partita::io::dataset& data, const command& c,
                                      partita::nn::training_options& options) {
  namespace nn = partita::nn;
  if (c.memory && !nn::is_counted<T, Device>(options))
    throw usage_error("--memory needs a --policy and a mesh for " + options.model +
                      ", since auto sets it up under every policy");
  const bool every_policy = c.policy == "auto";
  std::vector<candidate> all;
  for (const partita::policy& p : partita::named_policies) {
    if (!every_policy && p.name != c.policy) continue;
    for (const partita::mesh_shape shape :
         c.mesh == "auto" ? meshes_of(p, ranks) : std::vector{partita::default_mesh(p, ranks)})
      all.push_back(
          {{std::string(p.name), shape}, every_policy ? std::string(same_policy(p, shape)) : "", {}});
  }

  nn::edge_counts edges(make_mesh({ranks, 1, 1}).world(), data, *c.threads);
  std::vector<std::pair<candidate*, partita::mesh<Device>>> tried;
  for (candidate& k : all) {
    if (!k.same_as.empty()) continue;
    tried.emplace_back(&k, make_mesh(k.how.mesh));
    edges.expect(nn::vertex_blocking(tried.back().second, data, options));
  }
  for (auto& [k, m] : tried)
    k->cost = nn::predict_cost<T>(m, edges, options, partita::find_policy(k->how.policy));
  options.symmetric = edges.known_symmetry();
  const auto product = [](const auto& k) {
    return static_cast<double>(k.first->cost.words.max_rank + 1) * static_cast<double>(k.first->cost.bytes());
  };
  const auto bytes = [](const auto& k) { return k.first->cost.buffer_bytes.max_rank; };
  const auto fitting = std::ranges::stable_partition(tried, [&](const auto& k) {
    return !c.memory || !c.far.empty() || static_cast<std::size_t>(bytes(k)) <= *c.memory;
  });
  if (fitting.begin() == tried.begin()) {
    const auto least = std::ranges::min_element(tried, {}, bytes);
    partita::base::throw_error<partita::budget_error>(
        {"no policy fits into --memory: ", least->first->how.policy, " on mesh ", least->first->how.mesh,
         " needs least, buffers of ", bytes(*least), " bytes on a rank"});
  }
  std::ranges::min_element(tried.begin(), fitting.begin(), {}, product)->first->chosen = true;
  return all;
}

template <class T, class Device>
outcome train_in(int ranks, const mesh_maker<Device>& make_mesh, const far_starter<Device>& start_far,
                 const std::optional<arrangement>& asked, const partita::io::dataset& data, const command& c,
                 const observers& tell) {
  outcome o;
  const auto begin = std::chrono::steady_clock::now();
  partita::nn::training_options options = c.training;
  options.mini_batch.sampling_threads = *c.threads;
  if (asked)
    o.how = *asked;
  else
    o.candidates = candidates_for<T>(ranks, make_mesh, data, c, options);
  for (const candidate& k : o.candidates) {
    o.setup_peak_bytes = std::max(o.setup_peak_bytes, k.cost.buffer_bytes.max_rank);
    if (k.chosen) o.how = k.how;
  }
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

/// Every rank must call.
template <class Device>
outcome train_at(int ranks, const mesh_maker<Device>& make_mesh, const far_starter<Device>& start_far,
                 const std::optional<arrangement>& asked, const partita::io::dataset& data, const command& c,
                 const observers& tell) {
  return in_precision(c.precision, [&](auto zero) {
    return train_in<decltype(zero)>(ranks, make_mesh, start_far, asked, data, c, tell);
  });
}
