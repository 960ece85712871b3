// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Statistics over all ranks.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/memory/far.hpp"
#include "partita/nn/learning_rate.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

namespace detail {

/// Adds the report of an epoch to a result, or puts it in the place of that epoch's; whether its validation
/// score is the best so far.
inline bool add_epoch(training_result& to, const epoch_report& report, early_stopping& best,
                      const training_options& options) {
  if (!to.epochs.empty() && to.epochs.back().epoch == report.epoch) to.epochs.pop_back();
  to.epochs.push_back(report);
  const bool better = best.improves(report.validation_accuracy);
  if (better) {
    to.best_validation_epoch = report.epoch;
    to.test_accuracy_at_best_validation = report.test_accuracy;
  }
  to.out_of_patience = options.patience > 0 && best.stops();
  to.kept_epoch = options.patience > 0 ? to.best_validation_epoch : report.epoch;
  return better;
}

}  // namespace detail

/// The maximum and the sum of `mine` over the ranks. Collective.
inline max_and_total summarize(const communicator& world, global_index mine) {
  return {world.all_reduce(mine, reduction::max), world.all_reduce(mine)};
}

/// The traffic of far memory on all ranks, what all of them or none predicted, and the peaks of their far
/// buffers. Collective.
inline far_result summarize_far(const communicator& world, const memory::far_traffic& mine,
                                const std::optional<memory::far_traffic>& predicted, std::size_t peak) {
  const auto count = [&](std::uint64_t of_rank) {
    return summarize(world, static_cast<global_index>(of_rank));
  };
  far_result found{.chunks = count(mine.chunks),
                   .read = count(mine.read),
                   .written = count(mine.written),
                   .peak_bytes = count(peak)};
  if (predicted) {
    found.predicted_read = count(predicted->read);
    found.predicted_written = count(predicted->written);
  }
  const global_index rows = count(mine.operand_rows).total;
  if (rows > 0)
    found.replication = static_cast<double>(count(mine.rows_read).total) / static_cast<double>(rows);
  const std::array times{mine.transfer, mine.compute, mine.exposed};
  const std::vector<double> of_ranks = world.all_gather(times);  // which a reproducible mesh would not add up
  memory::far_traffic all;
  for (std::size_t k = 0; k < of_ranks.size(); k += times.size())
    all.transfer += of_ranks[k], all.compute += of_ranks[k + 1], all.exposed += of_ranks[k + 2];
  if (all.transfer > 0) found.overlap = all.overlap();
  return found;
}

namespace detail {

/// The reports of the first rank, on every rank. Collective. What travels: five numbers for each.
inline void broadcast_reports(const communicator& world, std::vector<epoch_report>& reports) {
  reports.resize(static_cast<std::size_t>(world.broadcast(static_cast<global_index>(reports.size()), 0)));
  std::vector<double> numbers;
  for (const epoch_report& r : reports)
    numbers.insert(numbers.end(),
                   {r.loss, r.train_accuracy, r.validation_accuracy, r.test_accuracy, r.seconds});
  world.broadcast(numbers, 0);
  for (std::size_t k = 0; k < reports.size(); ++k) {
    const double* const n = &numbers[5 * k];
    reports[k] = {static_cast<int>(k) + 1, n[0], n[1], n[2], n[3], n[4], {}};
  }
}

/// Whether it counts as training: evaluation does not, nor does making the matrices of an epoch's pairs.
inline bool is_of_step(const comm::ledger_entry& entry) {
  return entry.phase != "evaluation" && entry.phase != "distribute";
}

}  // namespace detail

/// The ledger entries of all ranks, summed by phase, operation and axis. Collective.
inline std::vector<comm::ledger_entry> merge_ledgers(const communicator& world,
                                                     const std::vector<comm::ledger_entry>& mine) {
  constexpr std::size_t fields = 6;
  std::vector<global_index> numbers;
  std::vector<double> seconds;
  std::vector<std::uint8_t> names;
  for (const comm::ledger_entry& e : mine) {
    for (const std::string& name : {e.phase, e.axis}) {
      numbers.push_back(static_cast<global_index>(name.size()));
      names.insert(names.end(), name.begin(), name.end());
    }
    numbers.insert(numbers.end(),
                   {static_cast<global_index>(e.kind), e.received.words, e.received.messages, e.bytes});
    seconds.push_back(e.seconds);
  }
  const auto of_all_ranks = [&](auto& list) {
    list = world.all_gather(list, world.all_gather(static_cast<global_index>(list.size())));
  };
  of_all_ranks(numbers);
  of_all_ranks(seconds);
  of_all_ranks(names);

  ledger merged;
  auto next = names.begin();
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    const global_index* const n = &numbers[fields * k];
    const auto phase = next, axis = phase + n[0];
    next = axis + n[1];
    merged.add({{phase, axis}, static_cast<operation>(n[2]), {axis, next}, {n[3], n[4]}, n[5], seconds[k]});
  }
  return merged.entries();
}

/// The means of consecutive groups of `size` values.
inline std::vector<double> means_of_groups(const std::vector<double>& values, std::size_t size) {
  std::vector<double> means(values.size() / size, 0);
  for (std::size_t i = 0; i < values.size(); ++i) means[i / size] += values[i] / static_cast<double>(size);
  return means;
}

/// The median; 0 for an empty list.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of the epochs after the first ones.
inline double median_seconds(const std::vector<epoch_report>& epochs, int after) {
  std::vector<double> seconds;
  for (std::size_t k = static_cast<std::size_t>(after); k < epochs.size(); ++k)
    seconds.push_back(epochs[k].seconds);
  return median(std::move(seconds));
}

/// The scores of `root`, on every rank. Collective. What travels: six numbers for each part of the split, and
/// the counts of confusion.
inline task_scores broadcast(const communicator& world, task_scores scores, int root) {
  scores.task = static_cast<io::task>(world.broadcast(static_cast<int>(scores.task), root));
  for (part_scores& of : scores.parts) {
    std::array numbers{of.score, of.macro_f1, of.roc_auc, of.root_mean_square, of.mean_absolute};
    world.broadcast(numbers, root);
    of.score = numbers[0], of.macro_f1 = numbers[1], of.roc_auc = numbers[2];
    of.root_mean_square = numbers[3], of.mean_absolute = numbers[4];
    of.confusion.resize(
        static_cast<std::size_t>(world.broadcast(static_cast<global_index>(of.confusion.size()), root)));
    if (!of.confusion.empty()) world.broadcast(of.confusion, root);
  }
  return scores;
}

/// The same of one number for each part of the split.
inline std::array<double, 3> broadcast(const communicator& world, std::array<double, 3> scores, int root) {
  world.broadcast(scores, root);
  return scores;
}

}  // namespace partita::nn
