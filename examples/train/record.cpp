// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "../ranks/machine.hpp"
#include "build.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/io/fnv1a.hpp"

namespace {

using nlohmann::ordered_json;

/// The checksum of a file.
std::string checksum(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  partita::io::fnv1a_64 sum;
  std::array<char, 1 << 16> block;
  do {
    in.read(block.data(), block.size());
    sum.add(std::as_bytes(std::span(block)).first(static_cast<std::size_t>(in.gcount())));
  } while (in);
  if (!in.eof()) throw partita::error("cannot read " + file.string());
  return sum.text();
}

ordered_json data_of(const command& c, const partita::io::dataset& data) {
  ordered_json j{{"name", data.name},          {"vertices", data.vertices},
                 {"edges", data.edges.size()}, {"features", data.features},
                 {"classes", data.classes},    {"fnv1a_64", ordered_json::object()}};
  if (!c.partition.file.empty()) j["fnv1a_64"][c.partition.file] = checksum(c.partition.file);
  if (is_built_in(c.data)) return j;
  const std::filesystem::path folder = c.data;
  const bool changed =
      partita::io::changed_file().has_value();  // then these are not the files that were read
  const bool sparse = exists(folder / "features_csr.npz");
  for (const char* name : {"edges.npy", "edge_weight.npy", sparse ? "features_csr.npz" : "features.npy",
                           "labels.npy", "split.npy"}) {
    const bool left_out = c.training.embedding > 0 && std::string_view(name).starts_with("features");
    if (!left_out && exists(folder / name))
      j["fnv1a_64"][name] = changed ? ordered_json(nullptr) : ordered_json(checksum(folder / name));
  }
  return j;
}

template <class T>
const std::string& word_for(T value, const value_names<T>& names) {
  return std::ranges::find(names, value, &std::pair<std::string, T>::second)->first;
}

/// Those of stages, as they were in effect.
void add_stages(ordered_json& j, const command& c, const partita::nn::pipeline_result& run) {
  const partita::nn::pipeline_options& p = c.training.pipeline;
  j["stages"] = p.stages;
  j["chunks"] = run.chunks;
  j["chunk-cut"] = c.chunk_cut;
  j["stage-layers"] = fmt::format("{}", fmt::join(run.layers, ","));
  j["history"] = word_for(p.history, history_names);
  if (keeps_window(p.history)) j["window"] = p.window;
  j["no-shuffle"] = !p.shuffle;
  j["no-correction"] = !p.correct;
  if (p.guard > 0) {
    j["guard"] = p.guard;
    j["tolerance"] = p.tolerance;
    j["least-cosine"] = p.least_cosine;
    j["on-divergence"] = word_for(p.on_divergence, guard_action_names);
  }
  j["exact-epochs"] = p.exact_epochs;
}

/// Every option that bears on the losses or the figures: `--NAME=VALUE` of each repeats the run.
ordered_json options_of(const command& c, int ranks, const outcome& run) {
  const partita::nn::training_options& t = c.training;
  ordered_json j;
  j["data"] =
      is_built_in(c.data) ? c.data : absolute(std::filesystem::path(c.data)).lexically_normal().string();
  j["model"] = t.model;
  j["hidden"] = fmt::format("{}", fmt::join(t.hidden, ","));
  if (t.layers > 0) j["layers"] = t.layers;
  j["coupling"] = t.coupling == partita::nn::coupling::coupled ? "coupled" : "decoupled";
  j["aggregation"] = t.aggregation == partita::nn::aggregation::mean ? "mean" : "max";
  j["heads"] = t.heads;
  j["hops"] = t.hops;
  j["split-chunks"] = t.split_chunks;
  j["recompute"] = word_for(t.recompute, recomputation_names);
  j["alpha"] = t.alpha;
  j["lambda"] = t.lambda;
  j["epsilon"] = t.epsilon;
  j["self-loops"] = t.loops == partita::nn::self_loops::once ? "once" : "sum";
  j["epochs"] = t.epochs;
  j["lr"] = t.learning_rate;
  j["weight-decay"] = t.weight_decay;
  j["convolution-decay"] = t.convolution_decay;
  j["dropout"] = t.dropout;
  j["seed"] = t.seed;
  j["precision"] = c.precision;
  j["raw-features"] = t.raw_features;
  if (t.embedding > 0) j["embedding"] = t.embedding;
  if (const partita::nn::mini_batch_options& m = t.mini_batch; m.batch > 0) {
    j["batch"] = m.batch;
    constexpr std::array samplers{"neighbours", "layers", "walks"};
    j["sampler"] = samplers[static_cast<std::size_t>(m.sampler)];
    j["fanout"] = fmt::format("{}", fmt::join(m.fanouts, ","));
    j["placement"] = name_of(run.result.mini_batch->placement);
    j["micro-batches"] = m.micro_batches;
    j["replace"] = m.replace;
    j["graph"] = m.cut_graph ? "cut" : "replicated";
    j["scores"] = m.sampled_scores ? "sampled" : "exact";
  }
  if (run.result.pipeline) add_stages(j, c, *run.result.pipeline);
  j["policy"] = run.how.policy;
  j["ranks"] = ranks;
  j["mesh"] = to_string(run.how.mesh);
  if (t.operands != partita::nn::operand_format::own) j["products"] = "bf16";
  if (t.exchange_chunks > 0) j["exchange-chunks"] = t.exchange_chunks;
  j["partition"] = in_one_word(c.partition);
  j["comm"] = c.comm;
  j["device"] = c.device;
  j["threads"] = c.threads.value();
  if (c.memory) j["memory"] = *c.memory;
  if (c.unpack_limit) j["unpack-limit"] = *c.unpack_limit;
  if (!c.far.empty()) j["far"] = absolute(std::filesystem::path(c.far)).lexically_normal().string();
  if (c.reproducible) j["reproducible"] = true;
  return j;
}

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

}  // namespace

ordered_json record_of(const command& c, int ranks, const outcome& run, const partita::io::dataset& data) {
  return {{"command", c.words},
          {"auto", !run.candidates.empty()},
          {"options", options_of(c, ranks, run)},
          {"blocks", !c.training.block_sizes.empty()                         ? "given"
                     : c.training.blocks == partita::nn::vertex_blocks::even ? "even"
                                                                             : "balanced"},
          {"data", data_of(c, data)},
          {"version", build::version},
          {"compiler", build::compiler},
          {"build_type", build::type},
          {"flags", build::flags},
          {"date", date_and_time()},
          {"host", host_name()}};
}
