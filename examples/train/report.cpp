// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <span>

#include "../ranks/scores.hpp"
#include "partita/io/whole_file.hpp"
#include "record.hpp"

using partita::nn::epoch_report;
using partita::nn::training_result;

namespace {

void print_comparison(const partita::nn::pipeline_comparison& k) {
  fmt::print(
      "guard: loss {:.6f}, the exact one {:.6f}, logits differ by {:.1f} %, gradients have the cosine "
      "{:.3f}{}\n",
      k.loss, k.exact_loss, 100 * k.logits_difference, k.gradient_cosine,
      k.diverged ? "; the pipeline no longer follows the exact computation: " + k.reason : "");
}

/// In the JSON.
const char* name_of(partita::io::task task) {
  using enum partita::io::task;
  return task == classes ? "accuracy" : task == labels ? "micro_f1" : task == values ? "r_squared" : "mrr";
}

}  // namespace

partita::nn::epoch_observer progress_printer(int epochs, partita::io::task task) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  return [epochs, task, begin, last = begin - std::chrono::hours(1),
          done = 0](const partita::nn::epoch_report& r) mutable {
    ++done;
    const auto now = clock::now();
    if (r.epoch < epochs && !r.comparison && now - last < std::chrono::milliseconds(300)) return;
    last = now;
    const double elapsed = std::chrono::duration<double>(now - begin).count();
    fmt::print("epoch {:4}/{}  loss {:.6f}  {}train {:>7}  validation {:>7}  test {:>7}  {:.0f} s left\n",
               r.epoch, epochs, r.loss,
               task == partita::io::task::classes ? "" : std::string(title_of(task)) + ": ",
               score_text(task, r.train_accuracy), score_text(task, r.validation_accuracy),
               score_text(task, r.test_accuracy), elapsed / done * (epochs - r.epoch));
    if (r.comparison) print_comparison(*r.comparison);
    std::fflush(stdout);
  };
}

namespace {

using nlohmann::ordered_json;

constexpr const char* chosen_because = "the least product of words and bytes";

ordered_json in_json(partita::mesh_shape m) { return {m.row, m.col, m.depth}; }

ordered_json in_json(partita::nn::over_ranks o) { return {{"max_rank", o.max_rank}, {"total", o.total}}; }

ordered_json in_json(const partita::nn::policy_candidate& k) {
  ordered_json j{{"policy", k.policy.name}, {"mesh", in_json(k.mesh)}, {"chosen", k.chosen}};
  if (!k.same_as.empty()) {
    j["same_as"] = k.same_as;
    return j;
  }
  j["predicted_words_received"] = in_json(k.cost.words);
  j["predicted_bytes"] = {{"max_rank", k.cost.bytes()}};
  if (k.chosen) j["why"] = chosen_because;
  return j;
}

void add_mini_batches(ordered_json& j, const partita::nn::mini_batch_result& m) {
  j["placement"] = name_of(m.placement);
  j["iterations"] = m.iterations;
  j["roots"] = {{"max_rank", m.most_roots}};
  j["sampled_edges"] = m.sampled_edges;
  j["requested_rows"] = m.requested_rows;
  j["remote_rows"] = in_json(m.remote_rows);
  j["placements"] = ordered_json::array();
  for (const auto& [placement, words] : m.candidates)
    j["placements"].push_back({{"placement", name_of(placement)},
                               {"predicted_words_received", {{"max_rank", words}}},
                               {"chosen", placement == m.placement}});
}

void add_stages(ordered_json& j, const partita::nn::pipeline_result& p) {
  j["stages"] = p.stages;
  j["chunks"] = p.chunks;
  j["stage_layers"] = p.layers;
  j["bubble"] = p.bubble;
  j["boundary_words"] = in_json(p.boundary_words);
  j["history_bytes"] = in_json(p.history_bytes);
  j["exact_loss"] = ordered_json::array();
  for (const partita::nn::pipeline_comparison& k : p.comparisons)
    j["exact_loss"].push_back({{"epoch", k.epoch},
                               {"loss", k.loss},
                               {"exact_loss", k.exact_loss},
                               {"logits_difference", k.logits_difference},
                               {"gradient_cosine", k.gradient_cosine},
                               {"diverged", k.diverged},
                               {"reason", k.reason}});
}

void add_far(ordered_json& j, const partita::nn::training_result& result) {
  const partita::nn::far_result& f = *result.far;
  j["chunks"] = in_json(f.chunks);
  j["far_bytes"] = {{"read", in_json(f.read)}, {"written", in_json(f.written)}};
  j["predicted_far_bytes"] = nullptr;
  if (f.predicted_read && f.predicted_written)
    j["predicted_far_bytes"] = {{"read", in_json(*f.predicted_read)},
                                {"written", in_json(*f.predicted_written)}};
  j["replication"] = f.replication;
  j["overlap"] = f.overlap ? ordered_json(*f.overlap) : ordered_json(nullptr);
  j["near_peak_bytes"] = in_json(result.peak_bytes);
  j["far_peak_bytes"] = in_json(f.peak_bytes);
}

ordered_json or_null(double score) { return std::isnan(score) ? ordered_json() : ordered_json(score); }

/// All scores of the task, by part of the split.
ordered_json in_json(const partita::nn::task_scores& scores) {
  using enum partita::io::task;
  ordered_json j;
  for (const auto& [name, of] : {std::pair("train", &scores.parts[0]), std::pair("val", &scores.parts[1]),
                                 std::pair("test", &scores.parts[2])}) {
    ordered_json& to = j[name];
    to[name_of(scores.task)] = or_null(of->score);
    if (scores.task == labels) to["roc_auc"] = or_null(of->roc_auc);
    if (scores.task == links) to["hits"] = or_null(of->hits);
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
void add_scores(ordered_json& j, const training_result& result, partita::io::task task) {
  for (const epoch_report& e : result.epochs) {
    j["loss"].push_back(e.loss);
    j["train_accuracies"].push_back(or_null(e.train_accuracy));
    j["val_accuracies"].push_back(or_null(e.validation_accuracy));
    j["test_accuracies"].push_back(or_null(e.test_accuracy));
  }
  const epoch_report& last = result.kept();
  j["score"] = name_of(task);
  j["train_accuracy"] = or_null(last.train_accuracy);
  j["val_accuracy"] = or_null(last.validation_accuracy);
  j["test_accuracy"] = or_null(last.test_accuracy);
  const int best = result.best_validation_epoch;
  j["best_val_epoch"] = best > 0 ? ordered_json(best) : ordered_json();
  j["test_accuracy_at_best_val"] = or_null(result.test_accuracy_at_best_validation);
}

}  // namespace

void write_json(const std::string& path, const command& c, int ranks, const outcome& run,
                const partita::io::dataset& data) {
  const partita::nn::training_result& result = run.result;
  ordered_json j;
  j["model"] = c.training.model;
  j["policy"] = run.how.policy;
  j["ranks"] = ranks;
  j["mesh"] = in_json(result.mesh);
  j["device"] = c.device;
  j["comm"] = c.comm;
  j["threads"] = c.threads.value();
  j["duplicate_edges"] = run.duplicate_edges < 0 ? ordered_json(nullptr) : ordered_json(run.duplicate_edges);
  j["partition"] = {{"name", c.partition.name},
                    {"parts", c.partition.parts},
                    {"edge_cut", c.partition.quality.edge_cut},
                    {"locality", c.partition.quality.locality}};
  j["epochs"] = result.epochs.size();
  j["resumed_from"] = result.resumed_from > 0 ? ordered_json(result.resumed_from) : ordered_json(nullptr);
  j["stopped"] = result.stopped;
  if (c.training.patience > 0) {
    j["out_of_patience"] = result.out_of_patience;
    j["kept_epoch"] = result.kept_epoch > 0 ? ordered_json(result.kept_epoch) : ordered_json();
  }
  j["notes"] = run.notes;
  add_scores(j, result, data.task);
  j["scores"] = in_json(result.scores);
  j["seconds_per_epoch"] = result.seconds_per_epoch;
  j["words_received"] = in_json(result.words_received);
  j["predicted_words_received"] = in_json(result.predicted_words_received);
  j["messages"] = in_json(result.messages);
  if (result.mini_batch) add_mini_batches(j, *result.mini_batch);
  if (result.pipeline) add_stages(j, *result.pipeline);
  if (result.far) add_far(j, result);
  j["peak_bytes"] = {{"max_rank", result.peak_bytes.max_rank}};
  j["peak_rss_bytes"] = in_json(run.peak_rss_bytes);
  j["setup_seconds"] = {
      {"read", run.read_seconds}, {"distribute", result.distribute_seconds}, {"plan", run.plan_seconds}};
  j["setup_peak_bytes"] = {{"max_rank", run.setup_peak_bytes}};
  if (const std::string note = degenerate_mesh(run.how); note.empty())
    j["degenerate_mesh"] = nullptr;
  else
    j["degenerate_mesh"] = note;
  j["candidates"] = ordered_json::array();
  for (const partita::nn::policy_candidate& k : run.candidates) j["candidates"].push_back(in_json(k));
  j["ledger"] = ordered_json::array();
  for (const partita::comm::ledger_entry& e : result.ledger)
    j["ledger"].push_back({{"phase", e.phase},
                           {"operation", name_of(e.kind)},
                           {"axis", e.axis},
                           {"elements", e.received.words},
                           {"bytes", e.bytes},
                           {"messages", e.received.messages},
                           {"seconds", e.seconds}});
  j["run"] = record_of(c, ranks, run, data);
  const std::string text = j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  partita::io::write_whole_file(path, parts);
}

namespace {

void print_candidates(const std::vector<partita::nn::policy_candidate>& candidates) {
  fmt::print("{:16} {:9} {:>21} {:>21}\n", "auto: policy", "mesh", "words, busiest rank", "MB, busiest rank");
  for (const partita::nn::policy_candidate& k : candidates)
    if (k.same_as.empty())
      fmt::print("{:16} {:9} {:21} {:21.3f}{}\n", k.policy.name, to_string(k.mesh), k.cost.words.max_rank,
                 1e-6 * static_cast<double>(k.cost.bytes()),
                 k.chosen ? fmt::format("  chosen: {}", chosen_because) : "");
    else
      fmt::print("{:16} {:9} the same as {}\n", k.policy.name, to_string(k.mesh), k.same_as);
  std::fflush(stdout);
}

void print_stages(const partita::nn::pipeline_result& p) {
  for (std::size_t k = 0; k < p.layers.size(); ++k)
    fmt::print("stage {}: {} {}, idle for {:.1f} % of its time\n", k, p.layers[k],
               p.layers[k] == 1 ? "layer" : "layers", 100 * p.bubble[k]);
  fmt::print("{} {}: {} words between stages received by the busiest rank, {} in all; {:.3f} MB of history\n",
             p.chunks, p.chunks == 1 ? "chunk" : "chunks", p.boundary_words.max_rank, p.boundary_words.total,
             1e-6 * static_cast<double>(p.history_bytes.total));
}

void print_far(const partita::nn::far_result& f, partita::nn::over_ranks near_bytes) {
  const auto megabytes = [](partita::global_index bytes) { return 1e-6 * static_cast<double>(bytes); };
  fmt::print("far memory: {} chunks in an epoch on all ranks, {:.3f} MB read, {:.3f} MB written{}\n",
             f.chunks.total, megabytes(f.read.total), megabytes(f.written.total),
             f.overlap ? fmt::format("; overlap {:.2f}", *f.overlap) : "");
  fmt::print("buffers of the busiest rank: {:.3f} MB near, {:.3f} MB far\n", megabytes(near_bytes.max_rank),
             megabytes(f.peak_bytes.max_rank));
}

}  // namespace

void print_start(const outcome& run) {
  if (run.how.mesh.size() > 1 && !run.candidates.empty()) print_candidates(run.candidates);
  if (const std::string note = degenerate_mesh(run.how); !note.empty())
    fmt::print(stderr, "train: {}\n", note);
}

void print_forecast(const partita::far_forecast& f, const partita::memory::far_rates& rates) {
  fmt::print("an epoch on the first rank over far memory: {}\n", f.explain(rates));
  std::fflush(stdout);
}

void print_summary(const std::string& policy, int ranks, const partita::nn::training_result& result,
                   partita::io::task task) {
  const partita::nn::epoch_report last = result.kept();
  fmt::print("{} on {} {} ({}{}): loss {:.6f}, test {} {}{}\n", policy, ranks, ranks == 1 ? "rank" : "ranks",
             to_string(result.mesh), result.pipeline ? " in each stage" : "", last.loss, title_of(task),
             score_text(task, last.test_accuracy),
             result.best_validation_epoch > 0
                 ? fmt::format(", {} at the best validation epoch {}",
                               score_text(task, result.test_accuracy_at_best_validation),
                               result.best_validation_epoch)
                 : "");
  const partita::nn::part_scores& test = result.scores.parts[2];
  if (task == partita::io::task::values)
    fmt::print("test: RMSE {:.6g}, MAE {:.6g}\n", test.root_mean_square, test.mean_absolute);
  else if (task == partita::io::task::links)
    fmt::print("test: Hits {}\n", score_text(partita::io::task::classes, test.hits));
  else
    fmt::print("test: {} {}\n", task == partita::io::task::labels ? "area under ROC curves" : "macro-F1",
               task == partita::io::task::labels ? fmt::format("{:.4f}", test.roc_auc)
                                                 : score_text(task, test.macro_f1));
  if (result.out_of_patience)
    fmt::print("training ended after epoch {}, as the validation score rose no more; kept is epoch {}\n",
               result.epochs.size(), result.kept_epoch);
  fmt::print("a training epoch: {:.2f} ms, {} words received by the busiest rank (predicted {}), {} in all\n",
             1000 * result.seconds_per_epoch, result.words_received.max_rank,
             result.predicted_words_received.max_rank, result.words_received.total);
  if (const auto& m = result.mini_batch)
    fmt::print("placement {}: {} iterations, {} edges sampled, {} of {} rows of features from other ranks\n",
               name_of(m->placement), m->iterations, m->sampled_edges, m->remote_rows.total,
               m->requested_rows);
  if (result.pipeline) print_stages(*result.pipeline);
  if (result.far) print_far(*result.far, result.peak_bytes);
}
