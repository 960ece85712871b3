// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <utility>

#include "../ranks/scores.hpp"
#include "checks.hpp"
#include "process.hpp"
#include "report.hpp"

namespace {

using clock = std::chrono::steady_clock;

double seconds_between(clock::time_point begin, clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}
double megabytes(partita::global_index bytes) { return 1e-6 * static_cast<double>(bytes); }

nn::epoch_observer epoch_printer(int epochs, io::task task) {
  const auto begin = clock::now();
  return [=, last = begin - std::chrono::hours(1), done = 0, seen = 0](const nn::epoch_report& r) mutable {
    const bool again = std::exchange(seen, r.epoch) == r.epoch;  // a signal has ended training here
    if (!again) ++done;
    const auto now = clock::now();
    if (r.epoch < epochs && !r.comparison && !again && now - last < std::chrono::milliseconds(300)) return;
    last = now;
    fmt::print("epoch {:4}/{}  loss {:.6f}  {}train {:>7}  validation {:>7}  test {:>7}  {:.0f} s left\n",
               r.epoch, epochs, r.loss, task == io::task::classes ? "" : std::string(title_of(task)) + ": ",
               score_text(task, r.train_accuracy), score_text(task, r.validation_accuracy),
               score_text(task, r.test_accuracy), seconds_between(begin, now) / done * (epochs - r.epoch));
    if (const auto& k = r.comparison; k && !again)
      fmt::print(
          "guard: loss {:.6f}, the exact one {:.6f}, logits differ by {:.1f} %, gradients have the cosine "
          "{:.3f}{}\n",
          k->loss, k->exact_loss, 100 * k->logits_difference, k->gradient_cosine,
          k->diverged ? "; the pipeline no longer follows the exact computation: " + k->reason : "");
    std::fflush(stdout);
  };
}

void print_start(const command& c, const outcome& run) {
  if (run.how.mesh.size() > 1 && !run.candidates.empty()) {
    const bool timed = run.candidates.front().cost.seconds > 0;
    fmt::print("{:16} {:9} {:17} {:>21} {:>21}{}\n", "auto: policy", "mesh", timed ? "exchange" : "",
               "words, busiest rank", "MiB, busiest rank", timed ? "     ms a step" : "");
    for (const nn::policy_candidate& k : run.candidates)
      if (k.same_as.empty())
        fmt::print("{:16} {:9} {:17} {:21} {:21.3f}{}{}{}\n", k.policy.name, to_string(k.mesh),
                   fmt::format("{} {} {}", exchange_name(k.exchange), stationary_name(k.stationary),
                               k.chunks > 0 ? std::to_string(k.chunks) : ""),
                   k.cost.words.max_rank, mebibytes(timed ? k.cost.buffer_bytes.max_rank : k.cost.bytes()),
                   timed ? fmt::format(" {:13.3f}", 1e3 * k.cost.seconds) : "", k.chosen ? "  chosen: " : "",
                   k.chosen ? why_chosen(k) : "");
      else
        fmt::print("{:16} {:9} the same as {}\n", k.policy.name, to_string(k.mesh), k.same_as);
    std::fflush(stdout);
  }
  if (const std::string note = degenerate_mesh(run.how); !note.empty())
    fmt::print(stderr, "train: {}\n", note);
  print_notes(c, notes_on_mesh(c, run.how.mesh));
}

void print_stop(const command& c, const nn::training_result& result) {
  fmt::print(stderr, "train: {} ended training after epoch {} of {}; {}\n",
             ending_signal == SIGTERM  ? "SIGTERM"
             : ending_signal == SIGINT ? "SIGINT"
                                       : "a signal to another rank",
             result.epochs.size(), c.training.epochs,
             c.checkpoint.folder.empty() ? "without --checkpoint, nothing is saved"
                                         : "--resume continues from there");
}

void print_scores(const command& c, int ranks, const outcome& run, io::task task) {
  const nn::training_result& result = run.result;
  const nn::epoch_report last = result.kept();
  fmt::print("{} on {} {} ({}{}): loss {:.6f}, test {} {}", run.how.policy, ranks,
             ranks == 1 ? "rank" : "ranks", to_string(result.mesh), result.pipeline ? " in each stage" : "",
             last.loss, title_of(task), score_text(task, last.test_accuracy));
  if (result.best_validation_epoch > 0)
    fmt::print(", {} at the best validation epoch {}",
               score_text(task, result.test_accuracy_at_best_validation), result.best_validation_epoch);
  const nn::part_scores& test = result.scores.parts[2];
  if (task == io::task::values)
    fmt::print("\ntest: RMSE {:.6g}, MAE {:.6g}\n", test.root_mean_square, test.mean_absolute);
  else if (task == io::task::links)
    fmt::print("\ntest: Hits@{} {}, area under the ROC curve {:.4f}\n", c.training.links.hits,
               score_text(io::task::classes, test.hits), test.roc_auc);
  else if (task == io::task::labels)
    fmt::print("\ntest: area under ROC curves {:.4f}\n", test.roc_auc);
  else
    fmt::print("\ntest: macro-F1 {}\n", score_text(task, test.macro_f1));
  if (result.out_of_patience)
    fmt::print(
        "training ended after epoch {}, since the validation score no longer improved; it keeps epoch {}\n",
        result.epochs.size(), result.kept_epoch);
}

void print_stages(const nn::pipeline_result& p) {
  for (std::size_t k = 0; k < p.layers.size(); ++k)
    fmt::print("stage {}: {} {}, idle for {:.1f} % of its time\n", k, p.layers[k],
               p.layers[k] == 1 ? "layer" : "layers", 100 * p.bubble[k]);
  fmt::print("{} {}: {} words between stages received by the busiest rank, {} in all; {:.3f} MB of history\n",
             p.chunks, p.chunks == 1 ? "chunk" : "chunks", p.boundary_words.max_rank, p.boundary_words.total,
             megabytes(p.history_bytes.total));
}

void print_costs(const command& c, const nn::training_result& result) {
  fmt::print(
      "a training epoch: {:.2f} ms{}, {} words received by the busiest rank (predicted {}), {} in all\n",
      1000 * result.seconds_per_epoch, c.machine ? " of the emulated machine" : "",
      result.words_received.max_rank, result.predicted_words_received.max_rank, result.words_received.total);
  if (c.training.encoding != partita::algebra::row_encoding::exact) {
    partita::global_index bytes = 0;
    for (const partita::comm::ledger_entry& e : result.ledger)
      if (e.phase != "evaluation" && e.phase != "checkpoint") bytes += e.bytes;
    fmt::print("words of encoded rows are bytes; received in all: {} bytes\n", bytes);
  }
  if (const auto& m = result.mini_batch)
    fmt::print("placement {}: {} iterations, {} edges sampled, {} of {} rows of features from other ranks\n",
               name_of(m->placement), m->iterations, m->sampled_edges, m->remote_rows.total,
               m->requested_rows);
  if (result.pipeline) print_stages(*result.pipeline);
  if (const auto& f = result.far) {
    fmt::print("far memory: {} chunks in an epoch on all ranks, {:.3f} MB read, {:.3f} MB written{}\n",
               f->chunks.total, megabytes(f->read.total), megabytes(f->written.total),
               f->overlap ? fmt::format("; overlap {:.2f}", *f->overlap) : "");
    fmt::print("buffers of the busiest rank: {:.3f} MB near, {:.3f} MB far\n",
               megabytes(result.peak_bytes.max_rank), megabytes(f->peak_bytes.max_rank));
  }
}

}  // namespace

void print_cuts(const command& c, const io::dataset& data) {
  const nn::pipeline_options& p = c.training.pipeline;
  if (const ordering& o = c.partition; o.parts > 1)
    fmt::print(
        "--partition {}: {} parts, {:.1f} % of the edges are cut, {:.1f} % of a vertex's in-neighbours are "
        "in its part, {:.2f} s\n",
        o.name, o.parts, 100 * o.quality.edge_cut, 100 * o.quality.locality, o.seconds);
  if (c.cuts_chunks())
    fmt::print("--chunk-cut metis: {} chunks, {:.1f} % of the edges run between them\n", p.chunk_count(),
               100 * io::quality_of(data.edges, p.chunk_of).edge_cut);
}

void print_notes(const command& c, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) fmt::print(stderr, "train: {}: {}\n", c.data, note);
}

observers printers(const command& c, io::task task) {
  return {[&c](const outcome& run) { print_start(c, run); }, epoch_printer(c.training.epochs, task),
          [](const partita::far_forecast& f, const partita::memory::far_rates& rates) {
            fmt::print("an epoch on the first rank over far memory: {}\n", f.explain(rates));
            std::fflush(stdout);
          }};
}

void print_end(const command& c, int ranks, const outcome& run, const io::dataset& data) {
  const nn::training_result& result = run.result;
  if (result.stopped) print_stop(c, result);
  if (c.quiet || result.resumed_from == std::ssize(result.epochs)) return;
  print_scores(c, ranks, run, data.task);
  print_costs(c, result);
}

partita::comm::progress work_printer(counted_work work, int from_all) {
  const double scale = from_all / work.size;
  return [work = std::move(work), scale, begin = clock::now(), last = clock::now(),
          first = partita::global_index{0}, before = partita::global_index{0}, begun = false,
          shown = false](partita::global_index done, partita::global_index all) mutable {
    const auto now = clock::now();
    if (!begun || done < before) {
      begin = last = now;
      first = done;
      shown = false;
    }
    before = done;
    begun = done < all;
    if (done <= first || seconds_between(last, now) < (shown ? 0.3 : 1)) return;
    last = now;
    shown = true;
    const auto of = static_cast<double>(all), so_far = static_cast<double>(done);
    fmt::print(work.to, "{}: {:.0f} of {:.0f} {}, {:.0f} s left\n", work.name, so_far * scale, of * scale,
               work.unit, seconds_between(begin, now) / static_cast<double>(done - first) * (of - so_far));
    std::fflush(work.to);
  };
}
