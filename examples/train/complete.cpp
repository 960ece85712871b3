// SPDX-License-Identifier: Apache-2.0
#include "complete.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "arrangement.hpp"

namespace {

using partita::nn::aggregation;
using partita::nn::coupling;

bool can_be_cut(const partita::nn::training_options& t) {
  constexpr std::array models{"gcn", "sage", "gin", "gcnii", "resgcn"};
  return std::ranges::find(models, t.model) != models.end() && t.coupling == coupling::coupled &&
         t.aggregation == aggregation::mean;
}

}  // namespace

void complete_mini_batches(const CLI::App& app, command& c) {
  partita::nn::training_options& t = c.training;
  if (t.mini_batch.batch == 0) {
    for (const char* name :
         {"--sampler", "--fanout", "--placement", "--micro-batches", "--replace", "--graph", "--scores"})
      if (app.count(name) > 0) throw usage_error(std::string(name) + " needs --batch");
    return;
  }
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
  if (c.policy == "auto") c.policy = "row_1d";  // of the evaluation only
}

int layers_of(const partita::nn::training_options& t) {
  constexpr std::array models{"gcn", "sage", "gin", "gat", "appnp"};
  if (std::ranges::find(models, t.model) == models.end()) return 0;
  return t.layers > 0 ? t.layers : static_cast<int>(t.hidden.size()) + 1;
}

void complete_stages(const CLI::App& app, command& c) {
  partita::nn::pipeline_options& p = c.training.pipeline;
  const auto given = [&](const char* name) { return app.count(name) > 0; };
  if (p.stages == 0) {
    for (const char* name :
         {"--chunks", "--chunk-cut", "--stage-layers", "--history", "--window", "--no-shuffle",
          "--no-correction", "--guard", "--tolerance", "--least-cosine", "--on-divergence", "--exact-epochs"})
      if (given(name)) throw usage_error(std::string(name) + " needs --stages");
    return;
  }
  for (const char* name : {"--batch", "--embedding"})
    if (given(name)) throw usage_error(std::string(name) + " and --stages do not go together");
  if (!can_be_cut(c.training))
    throw usage_error(
        "--stages is for --model gcn, sage, gin, gcnii and resgcn, coupled and with mean "
        "aggregation");
  if (!p.layers.empty() && std::ssize(p.layers) != p.stages)
    throw usage_error("--stage-layers has " + std::to_string(p.layers.size()) + " numbers for " +
                      std::to_string(p.stages) + " stages");
  if (given("--window") && !keeps_window(p.history))
    throw usage_error("--window is for --history window and halo");
  for (const char* name : {"--tolerance", "--least-cosine", "--on-divergence"})
    if (given(name) && p.guard == 0) throw usage_error(std::string(name) + " needs --guard");
  if (p.guard > 0 && p.history == partita::nn::chunk_history::exact)
    throw usage_error("--guard has nothing to compare with --history exact");
  if (p.guard > c.training.epochs)
    throw usage_error("--guard " + std::to_string(p.guard) + " compares nothing in " +
                      std::to_string(c.training.epochs) + " epochs");
  if (c.chunk_cut == "nonzeros") p.cut = partita::nn::chunk_cut::nonzeros;
  if (c.policy == "auto") c.policy = "row_1d";
}

void complete_products(const command& c) {
  if (c.training.operands == partita::nn::operand_format::own) return;
  if (!can_be_cut(c.training))
    throw usage_error(
        "--products bf16 is for --model gcn, sage, gin, gcnii and resgcn, coupled and with mean aggregation");
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
