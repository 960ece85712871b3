// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training at one place, in either precision, under every policy.

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <functional>
#include <string>
#include <utility>

#include "../ranks/rows_file.hpp"
#include "build.hpp"
#include "compare.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/checkpoint.hpp"
#include "partita/train/choose_training.hpp"
#include "process.hpp"
#include "run.hpp"

/// Makes a mesh of all ranks at a place; every rank must call.
template <class Device>
using mesh_maker = std::function<partita::mesh<Device>(partita::mesh_shape)>;

/// Gives a queue far memory, and measures what it moves in a second.
template <class Device>
using far_starter = std::function<partita::memory::far_rates(const partita::device_queue<Device>&,
                                                             const partita::far_options&)>;

/// Bounds the memory of a rank as --memory and --far say. Half of it is the window, and a buffer of at least
/// a sixteenth of that is far. Throws budget_error if the other half does not hold the buffers that exist
/// already and another sixteenth of the window, for smaller ones.
template <class Device>
partita::memory::far_rates bound_memory(const partita::device_queue<Device>& queue,
                                        const far_starter<Device>& start_far, const command& c) {
  if (!c.memory) return {};
  queue.limit_memory(*c.memory);
  if (c.far.empty()) return {};
  const std::size_t window = *c.memory / 2, from = window / 16, near = queue.meter()->current();
  if (near + from > *c.memory - window)
    throw partita::budget_error(fmt::format(
        "half of --memory is the window of far memory, and the other half, {} bytes, has no room beside "
        "buffers of {} bytes that stay near: --memory needs at least {}",
        *c.memory - window, near, (32 * near + 14) / 15));
  return start_far(queue, {.store = c.far_store, .window = window, .from = std::max<std::size_t>(1, from)});
}

/// The policies and meshes that `auto` stands for: one policy or every one, on its nearest mesh or on each
/// that it allows, of a stage where there are stages; with --far their buffers may be of any size. Every rank
/// must call.
template <class T, class Device>
nn::policy_choice chosen_by(const job& j, const mesh_maker<Device>& make_mesh,
                            const nn::training_options& options) {
  const command& c = j.c;
  const bool by_seconds = c.calibration || (c.machine && c.machine->kernels);
  nn::training_options asked = options;
  if (!by_seconds) asked.exchange_pieces = 0;
  const int stages = options.pipeline.stages;
  if (c.memory && (stages > 0 || !nn::is_counted<T, Device>(asked)))
    throw usage_error("--memory needs a --policy and a mesh for " +
                      (stages > 0 ? std::string("--stages") : options.model) +
                      ", since auto sets it up under every policy");
  nn::policy_search from{.every_mesh = c.mesh == "auto", .threads = *c.threads};
  if (c.policy != "auto") from.policies = {partita::find_policy(c.policy)};
  if (c.far.empty()) from.most_bytes = c.memory;
  const nn::model_row* const row = nn::find_row(options);
  if (by_seconds && !c.reproducible && row != nullptr && row->reads("exchange")) {
    from.exchanges = {partita::row_exchange::full, partita::row_exchange::sparsity_aware};
    from.stationaries = {partita::stationary::c, partita::stationary::a};
    if (c.far.empty()) from.chunks = {0, 1};
  }
  const plan_search all{from, stages, {options.pipeline.chunks}};
  if (c.calibration) return choose_on(&*c.calibration, all, j.world, j.data, c);
  if (stages > 0)
    return nn::choose_stages<T>(j.world.size(), make_mesh, j.data, options,
                                {{stages}, all.stage_chunks, from});
  return nn::choose_policy<T>(j.world.size(), make_mesh, j.data, options, from);
}

/// How a run goes on from the checkpoints that the command names, if any, and where signals ask it to end.
template <class T>
nn::run_hooks<T> hooks_for(const job& j, const partita::memory::far_rates& rates) {
  const command& c = j.c;
  nn::run_hooks<T> how;
  if (const checkpointing& k = c.checkpoint; !k.folder.empty())
    how = nn::checkpoints_in<T>(
        {.folder = k.folder, .every = k.every, .keep = k.keep, .resume = k.resume}, c.training, j.data,
        [](const std::string& sentence) { fmt::print(stderr, "train: {}\n", sentence); });
  how.load = [load = how.load, &c]() -> std::optional<nn::training_state<T>> {
    io::require_unchanged_files();  // while matrices were made of them
    give_back_free_memory();
    auto found = load ? load() : std::nullopt;
    const int epochs = c.training.epochs;
    if (found && !c.quiet && std::ssize(found->epochs) <= epochs)
      fmt::print("resumed after epoch {} of {}\n", found->epochs.size(), epochs);
    return found;
  };
  if (!c.init.empty()) {
    how.source = c.init;
    how.initial = [file = c.init] { return nn::values_in<T>(io::load_safetensors(file)); };
  }
  how.stop = [] { return ending_signal != 0; };
  if (c.old_number) how.old_number = *c.old_number;
  if (!c.far.empty())
    how.forecast = [&j, rates](const partita::far_forecast& f) {
      if (j.tell.forecast) j.tell.forecast(f, rates);
    };
  return how;
}

/// Writes the files that `c` asks for, with vertices in the order of the data on disk. Collective; one rank
/// writes. Throws partita::error when a file cannot be written.
template <class T, class Device>
void write_trained(nn::training<T, Device>& training, const job& j) {
  const command& c = j.c;
  const std::vector<partita::global_index> as_read, &vertices = c.old_number ? *c.old_number : as_read;
  nn::state_dict<T> values;
  nn::model_outputs<T> outputs;
  if (!c.save.empty()) values = training.values();
  if (!c.save_logits.empty() || !c.save_hidden.empty()) outputs = training.outputs(!c.save_hidden.empty());
  if (j.world.rank() != 0) return;
  nn::detail::sort_embedding(values, vertices, false);
  if (!c.save.empty()) nn::save_model(c.save, values, c.training, j.data, {{"partita", build::version}});
  if (!c.save_logits.empty()) write_rows(c.save_logits, std::move(outputs.logits), j.data.classes, vertices);
  if (!c.save_hidden.empty())
    write_rows(c.save_hidden, std::move(outputs.hidden), outputs.hidden_width, vertices);
}

/// Throws also what is thrown in training; a window that is too small is said as what --memory needs at
/// least.
template <class T, class Device>
outcome train_in(const job& j, const mesh_maker<Device>& make_mesh,
                 const far_starter<Device>& start_far) try {
  outcome o;
  const auto begin = std::chrono::steady_clock::now();
  nn::training_options options = j.c.training;
  options.mini_batch.sampling_threads = *j.c.threads;
  if (j.asked) {
    o.how = *j.asked;
  } else {
    nn::policy_choice choice = chosen_by<T>(j, make_mesh, options);
    o.how = {std::string(choice.policy.name), choice.mesh};
    options = nn::options_of(choice.chosen(), options);
    o.candidates = std::move(choice.candidates);
    options.symmetric = choice.symmetric;
  }
  for (const nn::policy_candidate& k : o.candidates)
    o.setup_peak_bytes = std::max(o.setup_peak_bytes, k.cost.buffer_bytes.max_rank);
  if (j.tell.begin) j.tell.begin(o);
  const partita::mesh<Device> m =
      make_mesh(j.c.on_stages() ? partita::mesh_shape{j.world.size(), 1, 1} : o.how.mesh);
  m.queue().meter()->restart_peak();  // what candidates needed is no part of the run
  m.ledger().clear();                 // nor the time in which they were distributed
  const nn::run_hooks<T> how = hooks_for<T>(j, bound_memory(m.queue(), start_far, j.c));
  const partita::policy& p = partita::find_policy(o.how.policy);
  const auto training = nn::make_training<T>(m, j.data, options, p, o.how.mesh);
  o.result = training->run(j.tell.epoch, how);
  write_trained(*training, j);
  o.setup_peak_bytes = std::max(o.setup_peak_bytes, o.result.setup_peak_bytes.max_rank);
  // The slowest rank at distributing may have begun before this one.
  const std::chrono::duration<double> before_epochs = o.result.first_epoch - begin;
  o.plan_seconds = std::max(0.0, before_epochs.count() - o.result.distribute_seconds);
  return o;
} catch (const partita::budget_error& e) {
  if (e.least_window == 0) throw;
  throw partita::budget_error(
      fmt::format("{}; --memory, half of which is the window, needs at least {}, and for a later operation "
                  "perhaps more",
                  e.what(), 2 * e.least_window));
}
