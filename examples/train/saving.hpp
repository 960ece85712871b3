// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What was trained, in files.

#include <utility>
#include <vector>

#include "../ranks/rows_file.hpp"
#include "build.hpp"
#include "command.hpp"
#include "partita/train/model_file.hpp"
#include "partita/train/trained_values.hpp"

/// What the files that `c` asks for hold.
inline partita::nn::wanted_values wanted_by(const command& c) {
  return {!c.save.empty(), !c.save_logits.empty(), !c.save_embeddings.empty()};
}

/// Writes these files, with vertices in the order of the data on disk. Local: the first rank calls it. Throws
/// partita::error when a file cannot be written.
template <class T>
void write_trained(partita::nn::trained_model<T> trained, const partita::io::dataset& data,
                   const command& c) {
  namespace nn = partita::nn;
  const std::vector<partita::global_index> as_read, &vertices = c.old_number ? *c.old_number : as_read;
  for (nn::parameter_values<T>& p : trained.values)
    if (p.name == nn::embedding_name)
      p.values = nn::in_order_of_vertices(std::move(p.values), p.shape.cols, vertices);
  if (!c.save.empty())
    nn::save_model(c.save, trained.values, c.training, data, {{"partita", build::version}});
  if (!c.save_logits.empty())
    write_rows(c.save_logits, std::move(trained.outputs.logits), data.classes, vertices);
  if (!c.save_embeddings.empty())
    write_rows(c.save_embeddings, std::move(trained.outputs.hidden), trained.outputs.hidden_width, vertices);
}
