// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The data that a saved model predicts. Needs libzip, nlohmann-json and POSIX.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "partita/io/dataset.hpp"
#include "partita/train/model_file.hpp"

namespace partita::nn {

namespace detail {

/// The rows of the learned input.
inline global_index embedding_rows(const io::safetensors_file& file) {
  const auto& shape = file.at(embedding_name).shape;
  return shape.empty() ? 0 : shape.front();
}

}  // namespace detail

/// The data with as many classes as the model; of a model of links its task is that, without labels. Local.
/// Throws input_error, which names the file and the data, where the model does not fit them.
inline io::dataset fitted_to(const saved_model& model, const io::safetensors_file& file, io::dataset data,
                             const std::string& name) {
  const auto refuse = [&](const std::string& has, const std::string& needs) {
    throw input_error(file.name() + " does not fit " + name + ": the model has " + needs + ", and the data " +
                      has);
  };
  const auto text = [](global_index number, const char* of) { return std::to_string(number) + of; };
  const bool learned = model.options.embedding > 0;
  const global_index rows = learned ? detail::embedding_rows(file) : 0;
  if (model.task == "links") {
    data.labels = {}, data.label_matrix = {}, data.values = {}, data.split = {};
    data.task = io::task::links, data.classes = model.classes;
  }
  if (learned && data.vertices != rows)
    refuse(text(data.vertices, " vertices"), text(rows, " rows of its embedding"));
  if (!learned && data.features != model.features)
    refuse(text(data.features, " features"), text(model.features, " features"));
  if (data.classes > model.classes ||
      (data.task != io::task::classes && !data.split.empty() && data.classes != model.classes))
    refuse(text(data.classes, " classes"), text(model.classes, " classes"));
  data.classes = model.classes;
  return data;
}

/// The data in the directory `dir`, for the model in `file`: without features where it has learned an
/// embedding. What its labels are: `as`, or what the model was trained for, or see io::load_dataset. Local.
/// Throws input_error as io::load_dataset and fitted_to do.
inline io::dataset load_data_for(const saved_model& model, const io::safetensors_file& file,
                                 const std::string& dir, std::optional<std::size_t> unpack_limit = {},
                                 std::optional<io::task> as = {}) {
  if (!as && model.task == "labels") as = io::task::labels;
  if (!as && model.task == "values") as = io::task::values;
  using io::vertex_data;
  const bool learned = model.options.embedding > 0;
  return fitted_to(model, file,
                   learned ? io::load_dataset(dir, vertex_data::edges, detail::embedding_rows(file), {}, as)
                           : io::load_dataset(dir, vertex_data::features, 0, unpack_limit, as),
                   dir);
}

}  // namespace partita::nn
