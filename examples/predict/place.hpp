// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Prediction at one place, in either precision.

#include <algorithm>
#include <utility>
#include <vector>

#include "../ranks/precision.hpp"
#include "../ranks/rows_file.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/make_training.hpp"
#include "run.hpp"

/// The largest of a row of logits is the class of a vertex; with several labels, those of positive ones.
template <class T>
split_counts counts_of(const partita::io::dataset& data, const std::vector<T>& logits) {
  split_counts counts;
  for (partita::global_index v = 0; v < data.vertices; ++v) {
    const std::uint8_t part = data.split[static_cast<std::size_t>(v)];
    if (part == 0) continue;
    partita::nn::score_counts& of_part = counts[part - 1u];
    ++of_part.vertices;
    const auto row = logits.begin() + v * data.classes;
    if (!data.multi_label) {
      const bool right =
          std::max_element(row, row + data.classes) - row == data.labels[static_cast<std::size_t>(v)];
      ++(right ? of_part.right : of_part.wrong);
      continue;
    }
    for (partita::global_index k = 0; k < data.classes; ++k) {
      const bool given = row[k] > 0,
                 is = data.label_matrix[static_cast<std::size_t>(v * data.classes + k)] == 1;
      of_part.right += given && is;
      of_part.wrong += given != is;
    }
  }
  return counts;
}

template <class T, class Device>
split_counts predict_in(const partita::mesh<Device>& m, const prediction_task& task,
                        const predict_command& c) {
  namespace nn = partita::nn;
  nn::predictor<T, Device> model(m, task.data, task.model.options, partita::find_policy(c.policy));
  nn::load_parameters(task.file, model.parameters());
  if (auto* const x = model.embedding()) nn::load_embedding(task.file, *x);
  std::vector<T> logits = model.outputs(false).logits;  // (n, classes), on the first rank
  if (m.rank() != 0) return {};
  const split_counts counts = task.has_labels ? counts_of(task.data, logits) : split_counts{};
  write_rows(c.out, std::move(logits), task.data.classes, {});
  return counts;
}

/// Every rank must call.
template <class Device>
split_counts predict_at(const partita::mesh<Device>& m, const prediction_task& task,
                        const predict_command& c) {
  return in_precision(c.precision, [&](auto zero) { return predict_in<decltype(zero)>(m, task, c); });
}
