// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>

using partita::nn::epoch_report;
using partita::nn::training_result;

partita::nn::epoch_observer progress_printer(int epochs) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  return [epochs, begin, last = begin - std::chrono::hours(1)](const partita::nn::epoch_report& r) mutable {
    const auto now = clock::now();
    if (r.epoch < epochs && now - last < std::chrono::milliseconds(300)) return;
    last = now;
    const double elapsed = std::chrono::duration<double>(now - begin).count();
    fmt::print(
        "epoch {:4}/{}  loss {:.6f}  train {:5.1f} %  validation {:5.1f} %  test {:5.1f} %  {:.0f} s left\n",
        r.epoch, epochs, r.loss, 100 * r.train_accuracy, 100 * r.validation_accuracy, 100 * r.test_accuracy,
        elapsed / r.epoch * (epochs - r.epoch));
    std::fflush(stdout);
  };
}

void write_json(const std::string& path, const command& c, int ranks, const outcome& run,
                partita::global_index duplicate_edges) {
  const partita::nn::training_result& result = run.result;
  const auto figures = [](partita::nn::over_ranks o) {
    return nlohmann::ordered_json{{"max_rank", o.max_rank}, {"total", o.total}};
  };
  const partita::nn::epoch_report last = result.epochs.back();
  nlohmann::ordered_json j;
  j["model"] = c.training.model;
  j["policy"] = run.how.policy;
  j["ranks"] = ranks;
  j["mesh"] = {result.mesh.row, result.mesh.col, result.mesh.depth};
  j["device"] = c.device;
  j["comm"] = c.comm;
  j["threads"] = c.threads.value();
  j["duplicate_edges"] = duplicate_edges;
  j["epochs"] = result.epochs.size();
  for (const partita::nn::epoch_report& e : result.epochs) j["loss"].push_back(e.loss);
  j["train_accuracy"] = last.train_accuracy;
  j["val_accuracy"] = last.validation_accuracy;
  j["test_accuracy"] = last.test_accuracy;
  j["best_val_epoch"] = result.best_validation_epoch;
  j["test_accuracy_at_best_val"] = result.test_accuracy_at_best_validation;
  j["seconds_per_epoch"] = result.seconds_per_epoch;
  j["words_received"] = figures(result.words_received);
  j["predicted_words_received"] = figures(result.predicted_words_received);
  j["messages"] = figures(result.messages);
  j["peak_bytes"] = {{"max_rank", result.peak_bytes.max_rank}};
  j["setup_peak_bytes"] = {{"max_rank", run.setup_peak_bytes}};
  j["ledger"] = nlohmann::ordered_json::array();
  for (const partita::ledger_entry& e : result.ledger)
    j["ledger"].push_back({{"phase", e.phase},
                           {"operation", name_of(e.kind)},
                           {"axis", e.axis},
                           {"elements", e.received.words},
                           {"bytes", e.bytes},
                           {"messages", e.received.messages},
                           {"seconds", e.seconds}});
  std::ofstream out(path);
  out << j.dump(1) << '\n';
  if (!out.flush()) throw partita::error("cannot write " + path);
}

void print_summary(const std::string& policy, int ranks, const partita::nn::training_result& result) {
  const partita::nn::epoch_report last = result.epochs.back();
  fmt::print(
      "{} on {} ranks ({}): loss {:.6f}, test accuracy {:.1f} %, {:.1f} % at the best validation epoch {}\n",
      policy, ranks, to_string(result.mesh), last.loss, 100 * last.test_accuracy,
      100 * result.test_accuracy_at_best_validation, result.best_validation_epoch);
  fmt::print("a training epoch: {:.2f} ms, {} words received by the busiest rank (predicted {}), {} in all\n",
             1000 * result.seconds_per_epoch, result.words_received.max_rank,
             result.predicted_words_received.max_rank, result.words_received.total);
}
