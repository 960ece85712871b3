// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

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

/// The options of a group that have an effect.
void add_fields(ordered_json& j, partita::nn::field_group group, partita::nn::training_options& t) {
  for (const partita::nn::field& f : partita::nn::fields)
    if (f.group == group && is_recorded(f, t))
      std::visit(
          [&]<class V>(V* value) {
            ordered_json& to = j[std::string(f.name)];
            if constexpr (std::is_same_v<V, bool>)
              f.has_words() ? to = f.word(*value) : to = *value != f.switches_off();
            else if constexpr (std::is_arithmetic_v<V> && !std::is_same_v<V, std::uint8_t>)
              to = *value;
            else
              to = text_of(f, t);
          },
          f.of(t));
}

/// The options of training, of batches and stages as they were in effect.
partita::nn::training_options options_in_effect(const command& c, const partita::nn::training_result& run) {
  partita::nn::training_options t = c.training;
  if (run.mini_batch) t.mini_batch.placement = run.mini_batch->placement;
  if (run.pipeline) {
    t.pipeline.chunks = run.pipeline->chunks;
    t.pipeline.layers = run.pipeline->layers;
  }
  return t;
}

/// Every option that bears on the losses or the figures: `--NAME=VALUE` of each repeats the run.
ordered_json options_of(const command& c, int ranks, const outcome& run) {
  using group = partita::nn::field_group;
  partita::nn::training_options t = options_in_effect(c, run.result);
  ordered_json j;
  j["data"] =
      is_built_in(c.data) ? c.data : absolute(std::filesystem::path(c.data)).lexically_normal().string();
  if (!c.task.empty()) j["task"] = c.task;
  add_fields(j, group::model, t);
  add_fields(j, group::training, t);
  if (!c.init.empty()) j["init"] = absolute(std::filesystem::path(c.init)).lexically_normal().string();
  j["precision"] = c.precision;
  for (const group each : {group::features, group::links, group::batches, group::stages})
    add_fields(j, each, t);
  j["policy"] = run.how.policy;
  j["ranks"] = ranks;
  j["mesh"] = to_string(run.how.mesh);
  add_fields(j, group::products, t);
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
          {"blocks", !c.training.block_sizes.empty()                            ? "given"
                     : c.training.blocks == partita::graph::vertex_blocks::even ? "even"
                                                                                : "balanced"},
          {"data", data_of(c, data)},
          {"version", build::version},
          {"compiler", build::compiler},
          {"build_type", build::type},
          {"flags", build::flags},
          {"date", date_and_time()},
          {"host", host_name()}};
}
