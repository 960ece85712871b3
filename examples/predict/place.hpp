// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Prediction at one place, in either precision.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../ranks/precision.hpp"
#include "../ranks/rows_file.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/make_training.hpp"
#include "run.hpp"

/// The largest of a row of logits is the class of a vertex; with several labels, those of positive ones; with
/// values, the row itself.
template <class T>
split_counts counts_of(const partita::io::dataset& data, const std::vector<T>& logits) {
  using partita::io::task;
  const auto columns = static_cast<std::size_t>(data.classes);
  split_counts counts;
  for (auto& of_part : counts) of_part.sums.resize(data.task == task::values ? columns : 2);
  for (std::size_t v = 0; v < static_cast<std::size_t>(data.vertices); ++v) {
    if (data.split[v] == 0) continue;
    partita::nn::score_counts& of_part = counts[data.split[v] - 1u];
    std::vector<double>& sums = of_part.sums;
    ++of_part.vertices;
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(v * columns);
    if (data.task == task::classes) {
      ++sums[std::max_element(row, row + data.classes) - row == data.labels[v] ? 0 : 1];
      continue;
    }
    for (std::size_t k = 0; k < columns; ++k) {
      if (data.task == task::values) {
        const double error = static_cast<double>(row[k]) - data.values[v * columns + k];
        sums[k] += error == error ? error * error : 0;
        continue;
      }
      const bool given = row[k] > 0, is = data.label_matrix[v * columns + k] == 1;
      sums[0] += given && is;
      sums[1] += given != is;
    }
  }
  return counts;
}

template <class T, class Device>
split_counts predict_in(const partita::mesh<Device>& m, const prediction_task& task,
                        const predict_command& c) {
  namespace nn = partita::nn;
  nn::predictor<T, Device> model(m, task.data, task.model.options, partita::find_policy(c.policy));
  std::optional<nn::link_decoder<T, Device>> decoder;
  if (task.data.task == partita::io::task::links)
    decoder.emplace(task.model.options.links.decoder, task.data.classes, model.parameters(), 0);
  nn::load_parameters(task.file, model.parameters());
  if (auto* const x = model.embedding()) nn::load_embedding(task.file, *x);
  if (!c.links.empty()) {
    std::vector<double> scores =
        nn::scores_of_pairs(*decoder, model.evaluate(), std::span<const partita::io::edge>(task.pairs));
    if (m.rank() == 0) write_rows(c.out, std::vector<T>(scores.begin(), scores.end()), 1, {});
    return {};
  }
  std::vector<T> logits = model.outputs(false).logits;  // (n, classes), on the first rank
  if (m.rank() != 0) return {};
  split_counts counts;
  if (task.has_labels) counts = counts_of(task.data, logits);
  write_rows(c.out, std::move(logits), task.data.classes, {});
  return counts;
}

/// Every rank must call.
template <class Device>
split_counts predict_at(const partita::mesh<Device>& m, const prediction_task& task,
                        const predict_command& c) {
  return in_precision(c.precision, [&](auto zero) { return predict_in<decltype(zero)>(m, task, c); });
}
