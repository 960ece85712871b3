// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was trained, in files.

#include <utility>
#include <vector>

#include "../ranks/rows_file.hpp"
#include "build.hpp"
#include "command.hpp"
#include "partita/train/make_training.hpp"
#include "partita/train/model_file.hpp"

/// Writes the files that `c` asks for, with vertices in the order of the data on disk. Collective; one rank
/// writes. Throws partita::error when a file cannot be written.
template <class T, class Device>
void write_trained(partita::nn::training<T, Device>& training, const partita::io::dataset& data,
                   const command& c, bool writes) {
  namespace nn = partita::nn;
  const std::vector<partita::global_index> as_read, &vertices = c.old_number ? *c.old_number : as_read;
  nn::state_dict<T> values;
  nn::model_outputs<T> outputs;
  if (!c.save.empty()) values = training.values();
  if (!c.save_logits.empty() || !c.save_embeddings.empty())
    outputs = training.outputs(!c.save_embeddings.empty());
  if (!writes) return;
  for (nn::parameter_values<T>& p : values)
    if (p.name == nn::embedding_name)
      p.values = nn::in_order_of_vertices(std::move(p.values), p.shape.cols, vertices);
  if (!c.save.empty()) nn::save_model(c.save, values, c.training, data, {{"partita", build::version}});
  if (!c.save_logits.empty()) write_rows(c.save_logits, std::move(outputs.logits), data.classes, vertices);
  if (!c.save_embeddings.empty())
    write_rows(c.save_embeddings, std::move(outputs.hidden), outputs.hidden_width, vertices);
}
