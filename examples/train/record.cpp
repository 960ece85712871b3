// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "../ranks/files.hpp"
#include "../ranks/machine.hpp"
#include "build.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/io/fnv1a.hpp"
#include "report.hpp"

using nlohmann::ordered_json;

namespace {

/// In the JSON.
const char* name_of(io::task task) {
  using enum io::task;
  return task == classes ? "accuracy" : task == labels ? "micro_f1" : task == values ? "r_squared" : "mrr";
}

ordered_json in_json(partita::mesh_shape m) { return {m.row, m.col, m.depth}; }

ordered_json in_json(nn::max_and_total o) { return {{"max_rank", o.max_rank}, {"total", o.total}}; }

template <class Value>
ordered_json or_null(const Value& value, bool is_there) {
  return is_there ? ordered_json(value) : ordered_json();
}
ordered_json or_null(double score) { return or_null(score, !std::isnan(score)); }

template <class List, class Each>
ordered_json list_of(const List& list, Each each) {
  ordered_json all = ordered_json::array();
  for (const auto& element : list) all.push_back(each(element));
  return all;
}

ordered_json candidate(const nn::policy_candidate& k) {
  ordered_json j{{"policy", k.policy.name}, {"mesh", in_json(k.mesh)}, {"chosen", k.chosen}};
  if (!k.same_as.empty()) {
    j["same_as"] = k.same_as;
    return j;
  }
  j["predicted_words_received"] = in_json(k.cost.words);
  j["predicted_bytes"] = {{"max_rank", k.cost.bytes()}};
  j["predicted_buffer_bytes"] = {{"max_rank", k.cost.buffer_bytes.max_rank}};
  if (k.cost.seconds > 0) j["predicted_seconds"] = k.cost.seconds, j["predicted_waiting"] = k.cost.waiting;
  if (k.exchange != partita::row_exchange::automatic) j["exchange"] = exchange_name(k.exchange);
  if (k.stationary != partita::stationary::automatic) j["stationary"] = stationary_name(k.stationary);
  if (k.chunks > 0) j["exchange_pieces"] = k.chunks;
  if (k.chosen) j["why"] = why_chosen(k);
  return j;
}

ordered_json comparison(const nn::pipeline_comparison& k) {
  return {{"epoch", k.epoch},
          {"loss", k.loss},
          {"exact_loss", k.exact_loss},
          {"logits_difference", k.logits_difference},
          {"gradient_cosine", k.gradient_cosine},
          {"diverged", k.diverged},
          {"reason", k.reason}};
}

ordered_json ledger_line(const partita::comm::ledger_entry& e) {
  return {{"phase", e.phase},    {"operation", name_of(e.kind)},
          {"axis", e.axis},      {"elements", e.received.words},
          {"bytes", e.bytes},    {"messages", e.received.messages},
          {"seconds", e.seconds}};
}

void add_mini_batches(ordered_json& j, const nn::mini_batch_result& m) {
  const auto placement = [&](const auto& k) -> ordered_json {
    return {{"placement", name_of(k.first)},
            {"predicted_words_received", {{"max_rank", k.second}}},
            {"chosen", k.first == m.placement}};
  };
  j.update({{"placement", name_of(m.placement)},
            {"iterations", m.iterations},
            {"roots", {{"max_rank", m.most_roots}}},
            {"sampled_edges", m.sampled_edges},
            {"requested_rows", m.requested_rows},
            {"remote_rows", in_json(m.remote_rows)},
            {"placements", list_of(m.candidates, placement)}});
}

void add_stages(ordered_json& j, const nn::pipeline_result& p) {
  j.update({{"stages", p.stages},
            {"chunks", p.chunks},
            {"stage_layers", p.layers},
            {"bubble", p.bubble},
            {"boundary_words", in_json(p.boundary_words)},
            {"history_bytes", in_json(p.history_bytes)},
            {"exact_loss", list_of(p.comparisons, comparison)}});
}

void add_far(ordered_json& j, const nn::far_result& f, nn::max_and_total near_bytes) {
  const auto bytes = [](nn::max_and_total read, nn::max_and_total written) -> ordered_json {
    return {{"read", in_json(read)}, {"written", in_json(written)}};
  };
  const bool is_predicted = f.predicted_read && f.predicted_written;
  j.update({{"chunks", in_json(f.chunks)},
            {"far_bytes", bytes(f.read, f.written)},
            {"predicted_far_bytes", is_predicted ? bytes(*f.predicted_read, *f.predicted_written) : nullptr},
            {"replication", f.replication},
            {"overlap", or_null(f.overlap.value_or(0), f.overlap.has_value())},
            {"near_peak_bytes", in_json(near_bytes)},
            {"far_peak_bytes", in_json(f.peak_bytes)}});
}

/// All scores of the task, by part of the split.
ordered_json in_json(const nn::task_scores& scores) {
  using enum io::task;
  ordered_json j;
  for (const auto& [name, of] : {std::pair("train", &scores.parts[0]), std::pair("val", &scores.parts[1]),
                                 std::pair("test", &scores.parts[2])}) {
    ordered_json& to = j[name];
    to[name_of(scores.task)] = or_null(of->score);
    if (scores.task == links) to["hits"] = or_null(of->hits);
    if (scores.task == labels || scores.task == links) to["roc_auc"] = or_null(of->roc_auc);
    if (scores.task == values)
      to["rmse"] = or_null(of->root_mean_square), to["mae"] = or_null(of->mean_absolute);
    if (scores.task != classes) continue;
    to["macro_f1"] = or_null(of->macro_f1);
    ordered_json& rows = to["confusion"] = ordered_json::array();
    const auto classes = static_cast<std::size_t>(std::lround(std::sqrt(of->confusion.size())));
    for (std::size_t c = 0; c < classes; ++c)
      rows.push_back(std::vector<std::int64_t>(of->confusion.begin() + c * classes,
                                               of->confusion.begin() + (c + 1) * classes));
  }
  return j;
}

/// Of every epoch and of the one that is kept; null where no vertex is counted, or nothing was evaluated.
void add_scores(ordered_json& j, const nn::training_result& result, io::task task) {
  for (const nn::epoch_report& e : result.epochs) {
    j["loss"].push_back(e.loss);
    j["train_accuracies"].push_back(or_null(e.train_accuracy));
    j["val_accuracies"].push_back(or_null(e.validation_accuracy));
    j["test_accuracies"].push_back(or_null(e.test_accuracy));
  }
  const nn::epoch_report& last = result.kept();
  const int best = result.best_validation_epoch;
  j.update({{"score", name_of(task)},
            {"train_accuracy", or_null(last.train_accuracy)},
            {"val_accuracy", or_null(last.validation_accuracy)},
            {"test_accuracy", or_null(last.test_accuracy)},
            {"best_val_epoch", or_null(best, best > 0)},
            {"test_accuracy_at_best_val", or_null(result.test_accuracy_at_best_validation)},
            {"scores", in_json(result.scores)}});
}

std::string whole_path(const std::string& path) {
  return absolute(std::filesystem::path(path)).lexically_normal().string();
}

/// The checksum of a file.
std::string checksum(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  io::fnv1a_64 sum;
  std::array<char, 1 << 16> block;
  do {
    in.read(block.data(), block.size());
    sum.add(std::as_bytes(std::span(block)).first(static_cast<std::size_t>(in.gcount())));
  } while (in);
  if (!in.eof()) throw partita::error("cannot read " + file.string());
  return sum.text();
}

ordered_json data_of(const command& c, const io::dataset& data) {
  ordered_json j{{"name", data.name},          {"vertices", data.vertices},
                 {"edges", data.edges.size()}, {"features", data.features},
                 {"classes", data.classes},    {"fnv1a_64", ordered_json::object()}};
  if (!c.partition.file.empty()) j["fnv1a_64"][c.partition.file] = checksum(c.partition.file);
  if (is_built_in(c.data)) return j;
  const std::filesystem::path folder = c.data;
  const bool changed = io::changed_file().has_value();  // then these are not the files that were read
  const bool sparse = exists(folder / "features_csr.npz");
  const auto add = [&](const std::filesystem::path& file) {
    j["fnv1a_64"][relative(file, folder).generic_string()] =
        changed ? ordered_json(nullptr) : ordered_json(checksum(file));
  };
  for (const char* name :
       {"edges.npy", "edge_weight.npy", "edge_features.npy", "edge_type.npy", "count.npy",
        sparse ? "features_csr.npz" : "features.npy", "labels.npy", "split.npy", "links_train.npy",
        "links_valid.npy", "links_valid_negatives.npy", "links_test.npy", "links_test_negatives.npy"}) {
    const bool left_out = c.training.embedding > 0 && std::string_view(name).starts_with("features");
    if (!left_out && exists(folder / name)) add(folder / name);
  }
  std::vector<std::filesystem::path> typed;
  for (const char* part : {"vertices", "edges"})
    if (is_directory(folder / part))
      for (const auto& e : std::filesystem::recursive_directory_iterator(folder / part))
        if (e.is_regular_file() && (e.path().extension() == ".npy" || e.path().extension() == ".npz"))
          typed.push_back(e.path());
  std::ranges::sort(typed);
  for (const auto& file : typed) add(file);
  return j;
}

/// The options of a group that have an effect.
void add_fields(ordered_json& j, nn::field_group group, nn::training_options& t) {
  for (const nn::field& f : nn::fields)
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

/// Every option that bears on the losses or the figures, those of batches, stages and `auto` as they were in
/// effect: `--NAME=VALUE` of each repeats the run.
ordered_json options_of(const command& c, int ranks, const outcome& run) {
  using group = nn::field_group;
  nn::training_options t = c.training;
  for (const nn::policy_candidate& k : run.candidates)
    if (k.chosen) t = nn::options_of(k, t);
  if (const auto& m = run.result.mini_batch) t.mini_batch.placement = m->placement;
  if (const auto& p = run.result.pipeline) t.pipeline.chunks = p->chunks, t.pipeline.layers = p->layers;
  ordered_json j;
  j["data"] = is_built_in(c.data) ? c.data : whole_path(c.data);
  if (!c.task.empty()) j["task"] = c.task;
  add_fields(j, group::model, t);
  add_fields(j, group::training, t);
  if (!c.init.empty()) j["init"] = whole_path(c.init);
  j["precision"] = c.tf32 ? "tf32" : c.precision;
  for (const group each : {group::features, group::links, group::batches, group::stages})
    add_fields(j, each, t);
  j["policy"] = run.how.policy;
  j["ranks"] = ranks;
  j["mesh"] = to_string(run.how.mesh);
  add_fields(j, group::products, t);
  j["partition"] = c.partition.name == "given" ? "given:" + whole_path(c.partition.file) : c.partition.name;
  j["comm"] = c.comm;
  if (c.machine) j["machine"] = whole_path(c.machine->file);
  if (c.mpi_collectives == "native") j["mpi-collectives"] = c.mpi_collectives;
  j["device"] = c.device;
  if (c.no_graphs) j["no-graphs"] = true;
  j["threads"] = c.threads.value();
  if (c.memory) j["memory"] = *c.memory;
  if (c.unpack_limit) j["unpack-limit"] = *c.unpack_limit;
  if (!c.far.empty()) j["far"] = whole_path(c.far);
  if (c.reproducible) j["reproducible"] = true;
  return j;
}

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

/// What reproduces the run.
ordered_json record_of(const command& c, int ranks, const outcome& run, const io::dataset& data) {
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

/// How the run was arranged, and how far it went.
ordered_json beginning(const command& c, int ranks, const outcome& run) {
  const nn::training_result& result = run.result;
  ordered_json j{{"model", c.training.model},
                 {"policy", run.how.policy},
                 {"ranks", ranks},
                 {"mesh", in_json(result.mesh)},
                 {"device", c.device},
                 {"comm", c.comm},
                 {"threads", c.threads.value()},
                 {"duplicate_edges", or_null(run.duplicate_edges, run.duplicate_edges >= 0)},
                 {"partition",
                  {{"name", c.partition.name},
                   {"parts", c.partition.parts},
                   {"edge_cut", c.partition.quality.edge_cut},
                   {"locality", c.partition.quality.locality}}},
                 {"epochs", result.epochs.size()},
                 {"resumed_from", or_null(result.resumed_from, result.resumed_from > 0)},
                 {"stopped", result.stopped}};
  if (c.training.patience > 0)
    j.update({{"out_of_patience", result.out_of_patience},
              {"kept_epoch", or_null(result.kept_epoch, result.kept_epoch > 0)}});
  j["notes"] = run.notes;
  return j;
}

void add_costs(ordered_json& j, const outcome& run) {
  const nn::training_result& result = run.result;
  j.update({{"seconds_per_epoch", result.seconds_per_epoch},
            {"words_received", in_json(result.words_received)},
            {"predicted_words_received", in_json(result.predicted_words_received)},
            {"messages", in_json(result.messages)}});
  if (result.mini_batch) add_mini_batches(j, *result.mini_batch);
  if (result.pipeline) add_stages(j, *result.pipeline);
  if (result.far) add_far(j, *result.far, result.peak_bytes);
  const std::string note = degenerate_mesh(run.how);
  j.update(
      {{"peak_bytes", {{"max_rank", result.peak_bytes.max_rank}}},
       {"peak_rss_bytes", in_json(run.peak_rss_bytes)},
       {"setup_seconds",
        {{"read", run.read_seconds}, {"distribute", result.distribute_seconds}, {"plan", run.plan_seconds}}},
       {"setup_peak_bytes", {{"max_rank", run.setup_peak_bytes}}},
       {"degenerate_mesh", or_null(note, !note.empty())},
       {"candidates", list_of(run.candidates, candidate)},
       {"ledger", list_of(result.ledger, ledger_line)}});
}

}  // namespace

void write_json(const std::string& path, const command& c, int ranks, const outcome& run,
                const io::dataset& data) {
  ordered_json j = beginning(c, ranks, run);
  add_scores(j, run.result, data.task);
  add_costs(j, run);
  j["run"] = record_of(c, ranks, run, data);
  const std::string text = j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  io::write_whole_file(path, parts);
}
