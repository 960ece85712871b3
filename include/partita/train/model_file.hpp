// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Trained models in safetensors files: tensors by the names of parameters, and metadata that says what the
/// model computes. Needs nlohmann-json and POSIX.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/io/dataset_type.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/safetensors.hpp"
#include "partita/train/fields.hpp"
#include "partita/train/finite.hpp"
#include "partita/train/state_dict.hpp"

namespace partita::nn {

/// What a file of a model says besides its parameters.
struct saved_model {
  training_options options;                ///< those that say what the model computes, and the seed
  global_index features = 0, classes = 0;  ///< columns of the data's features, and of the logits
  std::string precision = {}, data = {};   ///< f32 or f64; the name of the data
  std::string task = {};                   ///< labels or values; empty: classes, or an older file
};

namespace detail {

/// The text with a replacement character for each byte that is not UTF-8, as names of files may have.
inline std::string as_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

/// The metadata of one file.
class model_metadata {
 public:
  model_metadata(const std::string& file, const io::tensor_metadata& texts) : file_(file), texts_(texts) {}

  const std::string& text(const std::string& key) const {
    const auto found = texts_.find(key);
    if (found == texts_.end())
      base::throw_error<input_error>({file_, " is not a saved model: metadata key \"", key, "\" is missing"});
    return found->second;
  }
  bool has(const std::string& key) const { return texts_.contains(key); }
  void require(bool good, const std::string& key) const {
    if (!good)
      base::throw_error<input_error>(
          {file_, ": its metadata has ", key, " '", io::printable(text(key)), "'"});
  }
  global_index number(const std::string& key, global_index least) const {
    global_index value = 0;
    require(parse_number(text(key), value, static_cast<double>(least)), key);
    return value;
  }

 private:
  const std::string& file_;
  const io::tensor_metadata& texts_;
};

/// The key of an option in the metadata of a model.
inline std::string model_key(const field& f) {
  std::string key(f.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

/// The least number of elements that the weights of the model have: what it would allocate.
inline double least_weights(const saved_model& m) {
  const training_options& o = m.options;
  const auto number = [](auto value) { return static_cast<double>(value); };
  double in = number(o.embedding > 0 ? o.embedding : m.features), all = 0;
  const auto layer = [&](double out) {
    all += in * out;
    in = out;
  };
  const model_row* const row = find_row(o);
  const auto reads = [&](std::string_view field) { return row != nullptr && row->reads(field); };
  const bool side_by_side = reads("last-heads");  // heads, in all layers but the last
  if (row != nullptr && row->convolutions > 0) {
    const double h = number(o.hidden.front());
    layer(h);
    all += number(o.layers > 0 ? o.layers : row->convolutions) * h * h;
  } else if (row == nullptr || row->reads("hidden")) {
    const bool repeated = o.layers > 0 && o.hidden.size() == 1;
    const int times = repeated ? o.layers - 1 : 1;
    for (int k = 0; k < times; ++k)
      for (const global_index width : o.hidden) layer(number(width) * (side_by_side ? o.heads : 1));
  }
  layer(number(m.classes) * (side_by_side ? o.last_heads : 1));
  return all + (reads("heads") && !side_by_side ? number(o.heads) * number(m.classes) : 0);
}

/// Throws input_error for a model that has more layers or weights than the file has tensors and elements.
inline void require_weights(const io::safetensors_file& file, const saved_model& m) {
  double elements = 0;
  for (const io::named_tensor& tensor : file.tensors())
    elements += static_cast<double>(tensor.bytes.size()) / 4;
  const auto& hidden = m.options.hidden;
  const model_row* const row = find_row(m.options);
  const bool deep = row != nullptr && row->convolutions > 0;
  const bool layered = row == nullptr || row->reads("layers");  // with a tensor or more for each
  if ((layered && m.options.layers > std::ssize(file.tensors())) || (deep && hidden.empty()) ||
      least_weights(m) > elements)
    base::throw_error<input_error>({file.name(),
                                    ": its tensors are too few or too small for the model that its "
                                    "metadata describes"});
}

}  // namespace detail

/// The metadata of a model trained with these options on data with so many features and classes, in precision
/// T. Local.
template <std::floating_point T>
io::tensor_metadata metadata_of(training_options o, const io::dataset& data) {
  o.raw_features = o.raw_features || data.vertex_features.has_negative();
  io::tensor_metadata found{{"features", std::to_string(data.features)},
                            {"classes", std::to_string(data.classes)},
                            {"precision", sizeof(T) == 8 ? "f64" : "f32"},
                            {"data", detail::as_utf8(data.name)}};
  if (data.task != io::task::classes) found["task"] = detail::word_of(data.task);
  for (const field& f : fields)
    if (f.kept == field_kept::by_models && f.mode.refusal(o).empty())
      found[detail::model_key(f)] = text_of(f, o);
  return found;
}

/// The tensors of parameters, which must outlive them. Local.
template <class T>
std::vector<io::named_tensor> tensors_of(const state_dict<T>& values) {
  std::vector<io::named_tensor> tensors;
  for (const parameter_values<T>& p : values)
    tensors.push_back(io::tensor_of(p.name, {p.shape.rows, p.shape.cols}, std::span<const T>(p.values)));
  return tensors;
}

/// Writes a model (training::values) to a safetensors file, whole or not at all; `more`: metadata of other
/// keys. Local: one rank calls it. Throws input_error when the file cannot be written, and for a value that
/// is not finite.
template <class T>
void save_model(const std::filesystem::path& path, const state_dict<T>& values,
                const training_options& options, const io::dataset& data,
                const io::tensor_metadata& more = {}) {
  for (const parameter_values<T>& p : values)
    detail::require_finite(std::span(p.values), path.string(), "the parameter " + io::printable(p.name));
  io::tensor_metadata metadata = metadata_of<T>(options, data);
  metadata.insert(more.begin(), more.end());
  io::save_safetensors(path, tensors_of(values), metadata);
}

/// What the file of a model says of it. Local. Throws input_error, which names the file and the key, where
/// the metadata lacks one or has an invalid value, and for more weights than the file has room for.
inline saved_model saved_model_of(const io::safetensors_file& file) {
  const detail::model_metadata from(file.name(), file.metadata());
  saved_model m;
  for (const field& f : fields) {
    const std::string key = detail::model_key(f);
    const bool optional = key == "self_loops" || !f.mode.refusal({}).empty();
    if (f.kept != field_kept::by_models || (optional && !from.has(key))) continue;
    from.require(take(f, m.options, from.text(key)), key);
  }
  m.features = from.number("features", 0);
  m.classes = from.number("classes", 1);
  m.precision = from.text("precision");
  from.require(m.precision == "f32" || m.precision == "f64", "precision");
  m.data = from.text("data");
  if (from.has("task")) m.task = from.text("task");
  from.require(m.task.empty() || m.task == "labels" || m.task == "values" || m.task == "links", "task");
  if (m.task == "links") m.options.links.width = m.classes;
  detail::require_weights(file, m);
  return m;
}

/// The tensor `name` of a file, of this shape. Local. Throws input_error, which names the file, the tensor
/// and both shapes, unless there is one, and for a value that is not finite.
template <class T>
std::vector<T> values_in(const io::safetensors_file& file, const std::string& name, matrix_shape shape) {
  const std::vector<global_index>& found = file.at(name).shape;
  if (found != std::vector{shape.rows, shape.cols}) {
    std::string text;
    for (const global_index size : found) text += (text.empty() ? "" : " x ") + std::to_string(size);
    base::throw_error<input_error>(
        {file.name(), ": tensor ", name, " is ", text, ", the model's is ", shape});
  }
  std::vector<T> values = file.values<T>(name);
  detail::require_finite(std::span<const T>(values), file.name(), "tensor " + io::printable(name));
  return values;
}

/// The parameters of a set, those of a model or of one stage, = the tensors of the same names; other tensors
/// are ignored. Local: every rank calls it with the same file. Throws input_error as values_in; then no value
/// has changed.
template <class T, class Device>
void load_parameters(const io::safetensors_file& file, parameters<T, Device>& to) {
  state_dict<T> values;
  for (const parameter<T, Device>& p : to.list())
    values.push_back({p.name(), p.shape(), values_in<T>(file, p.name(), p.shape())});
  assign_values(to, values, file.name());
}

/// A learned input X (n x w) = the tensor "embedding"; `vertices`: see assign_rows. Local, as
/// load_parameters.
template <class T, class Device>
void load_embedding(const io::safetensors_file& file, dense<T, vertex_rows, Device>& x,
                    std::span<const global_index> vertices = {}) {
  assign_rows(x, values_in<T>(file, std::string(embedding_name), x.shape()), vertices);  // (n, w)
}

/// The tensors of a file but one of another name, such as the parameters of a model and its learned input:
/// for run_hooks::initial. Local. Throws input_error, which names the file and the tensor, for one that is
/// no matrix, and for a value that is not finite.
template <class T>
state_dict<T> values_in(const io::safetensors_file& file, std::string_view but = {}) {
  state_dict<T> found;
  for (const io::named_tensor& t : file.tensors()) {
    if (t.name == but) continue;
    const std::string shown = "the tensor " + io::printable(t.name);
    if (t.shape.size() != 2) base::throw_error<input_error>({file.name(), ": ", shown, " is not a matrix"});
    found.push_back({t.name, {t.shape[0], t.shape[1]}, file.values<T>(t.name)});
    detail::require_finite(std::span<const T>(found.back().values), file.name(), shown);
  }
  return found;
}

}  // namespace partita::nn
