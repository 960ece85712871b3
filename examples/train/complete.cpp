// SPDX-License-Identifier: Apache-2.0
#include "complete.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "../ranks/arrangement.hpp"

namespace {

using partita::nn::field;
using partita::nn::model_row;

void require_stages_possible(const partita::nn::training_options& t, const std::string& option) {
  const model_row* const row = find_row(t);
  if (row == nullptr || !row->on_stages)
    throw usage_error(option + " is for --model " + models_that(&model_row::on_stages) +
                      ", coupled and with mean aggregation");
}

/// row_1d for a policy that is not given.
void complete_policy(const CLI::App& app, command& c, const std::string& mode) {
  if (c.policy != "auto") return;
  if (app.count("--policy") > 0)
    throw usage_error("--policy auto and " + mode + " do not go together: name a policy, or none for row_1d");
  c.policy = "row_1d";
}

}  // namespace

void require_use(const CLI::App& app, const partita::nn::training_options& t) {
  for (const field& f : partita::nn::fields) {
    const std::string name = "--" + std::string(f.name);
    if (f.group != partita::nn::field_group::none && app.count(name) > 0 && !f.mode.refusal(t).empty())
      throw usage_error(name + std::string(f.mode.refusal(t)));
  }
  if (const field* const unread = unread_field(t)) {
    const model_row* const row = find_row(t);
    throw usage_error("--" + std::string(unread->name) + " is for --model " + models_of(*unread) + ", not " +
                      (row == nullptr ? t.model : row->title()));
  }
  if (t.schedule.curve != partita::nn::rate_curve::constant && t.schedule.least > t.learning_rate)
    throw usage_error(
        fmt::format("--schedule-least {} is more than --lr {}", t.schedule.least, t.learning_rate));
  if (t.raw_features && t.embedding > 0)
    throw usage_error("--raw-features and --embedding do not go together: then no features are read");
}

void complete_mini_batches(const CLI::App& app, command& c) {
  partita::nn::training_options& t = c.training;
  if (t.mini_batch.batch == 0) return;
  if (t.mini_batch.micro_batches > t.mini_batch.batch)
    throw usage_error("--micro-batches " + std::to_string(t.mini_batch.micro_batches) +
                      " are more parts than a batch of " + std::to_string(t.mini_batch.batch) +
                      " has vertices");
  const std::size_t layers =
      t.layers > 0 && t.hidden.size() == 1 ? static_cast<std::size_t>(t.layers) : t.hidden.size() + 1;
  std::vector<partita::local_index>& fanouts = t.mini_batch.fanouts;
  using partita::nn::batch_sampler;
  const batch_sampler sampler = t.mini_batch.sampler;
  const bool walks = sampler == batch_sampler::walks;
  const partita::local_index usual = walks ? 2 : sampler == batch_sampler::layers ? 1000 : 10;
  if (fanouts.size() < 2) fanouts.assign(walks ? 1 : layers, fanouts.empty() ? usual : fanouts[0]);
  if (sampler != batch_sampler::neighbours && *std::ranges::min_element(fanouts) < 1)
    throw usage_error("--fanout -1 is for --sampler neighbours");
  if (t.mini_batch.replace && sampler != batch_sampler::neighbours)
    throw usage_error("--replace is for --sampler neighbours");
  if (walks && t.mini_batch.sampled_scores) throw usage_error("--sampler walks needs --scores exact");
  if (walks && fanouts.front() > partita::nn::most_hops)
    throw usage_error("--fanout of --sampler walks is a length up to " +
                      std::to_string(partita::nn::most_hops) + ", not " + std::to_string(fanouts.front()));
  if (walks && fanouts.size() > 1)
    throw usage_error("--fanout of --sampler walks is one length, not " + std::to_string(fanouts.size()));
  if (!walks && fanouts.size() != layers)
    throw usage_error("--fanout has " + std::to_string(fanouts.size()) + " numbers, and the model " +
                      std::to_string(layers) + " layers");
  complete_policy(app, c, "--batch");  // of the evaluation only
}

int layers_of(const partita::nn::training_options& t) {
  const model_row* const row = find_row(t);
  if (row == nullptr || !row->reads("layers") || row->convolutions > 0) return 0;
  return t.layers > 0 ? t.layers : static_cast<int>(t.hidden.size()) + 1;
}

void complete_stages(const CLI::App& app, command& c) {
  partita::nn::pipeline_options& p = c.training.pipeline;
  if (p.stages == 0) return;
  for (const char* name : {"--batch", "--embedding", "--exchange-chunks"})
    if (app.count(name) > 0) throw usage_error(std::string(name) + " and --stages do not go together");
  require_stages_possible(c.training, "--stages");
  if (!p.layers.empty() && std::ssize(p.layers) != p.stages)
    throw usage_error("--stage-layers has " + std::to_string(p.layers.size()) + " numbers for " +
                      std::to_string(p.stages) + " stages");
  if (p.guard > 0 && p.history == partita::nn::chunk_history::exact)
    throw usage_error("--guard has nothing to compare with --history exact");
  if (p.guard > c.training.epochs)
    throw usage_error("--guard " + std::to_string(p.guard) + " compares nothing in " +
                      std::to_string(c.training.epochs) + " epochs");
  complete_policy(app, c, "--stages");
}

void complete_links(const CLI::App& app, command& c) {
  partita::nn::link_options& links = c.training.links;
  if (c.task != "links") {
    if (links.width > 0) throw usage_error("--link-width needs --task links");
    return;
  }
  for (const char* name : {"--batch", "--stages", "--reproducible", "--far"})
    if (app.count(name) > 0) throw usage_error(std::string(name) + " and --task links do not go together");
  if (links.width == 0) links.width = c.training.hidden.back();
  if (links.held_out.size() != 2 || links.held_out[0] + links.held_out[1] >= 1)
    throw usage_error("--held-out takes two shares, of validation and test links, below 1 together");
}

void complete_products(const command& c) {
  if (c.training.operands == partita::nn::operand_format::own) return;
  require_stages_possible(c.training, "--products bf16");
  for (const auto& [given, name] :
       {std::pair(c.precision == "f64", "--precision f64"), std::pair(c.reproducible, "--reproducible"),
        std::pair(c.device == "cuda", "--device cuda"), std::pair(c.training.mini_batch.batch > 0, "--batch"),
        std::pair(c.training.pipeline.stages > 0, "--stages")})
    if (given) throw usage_error(std::string("--products bf16 and ") + name + " do not go together");
}

void complete_mesh(const command& c) {
  if (c.mesh != "auto") return;
  if (c.replication) throw usage_error("--replication and --mesh auto do not go together");
  for (const auto& [given, name] : {std::pair(c.training.mini_batch.batch > 0, "--batch"),
                                    std::pair(c.training.pipeline.stages > 0, "--stages")})
    if (given) throw usage_error(std::string(name) + " and --mesh auto do not go together");
}
