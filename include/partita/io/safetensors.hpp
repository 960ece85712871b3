// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes safetensors files: named arrays after a header in JSON. Needs nlohmann-json and POSIX.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/safetensors_header.hpp"
#include "partita/io/whole_file.hpp"

namespace partita::io {

namespace detail {

template <class T>
constexpr std::string_view safetensors_dtype = std::same_as<T, float>          ? "F32"
                                               : std::same_as<T, double>       ? "F64"
                                               : std::same_as<T, std::int64_t> ? "I64"
                                                                               : "";

/// `text` as JSON; if it is not UTF-8, the message calls it `what`.
inline std::string json_text(std::string_view file, const char* what, const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(file, std::string(what) + ' ' + detail::quoted(text) + " is not UTF-8");
  }
}

/// The length of the header, and the header; the tensors follow it in the order of `tensors`.
inline std::string safetensors_head(std::string_view file, const std::vector<const named_tensor*>& tensors,
                                    const tensor_metadata& metadata) {
  std::string text;
  const auto add = [&](const std::string& key) { text += (text.empty() ? "{" : ",") + key + ":{"; };
  if (!metadata.empty()) {
    add(json_text(file, "the key", std::string(metadata_key)));
    for (const auto& [key, value] : metadata)
      text += json_text(file, "the key", key) + ':' + json_text(file, "the text", value) + ',';
    text.back() = '}';
  }
  std::size_t begin = 0;
  for (const named_tensor* tensor : tensors) {
    add(json_text(file, "the name", tensor->name));
    text += "\"dtype\":\"" + tensor->dtype + "\",\"shape\":[";
    for (std::size_t d = 0; d < tensor->shape.size(); ++d)
      text += (d == 0 ? "" : ",") + std::to_string(tensor->shape[d]);
    const std::size_t end = begin + tensor->bytes.size();
    text += "],\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
    begin = end;
  }
  text += text.empty() ? "{}" : "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length(8, '\0');
  for (std::size_t k = 0; k < 8; ++k)
    length[k] = static_cast<char>(std::uint64_t{text.size()} >> 8 * k & 255);
  return length + text;
}

template <class To, class From>
std::vector<To> values_of(std::span<const std::byte> bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  if constexpr (std::same_as<To, From>) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      From value;
      std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
      values[i] = static_cast<To>(value);
    }
  }
  return values;
}

}  // namespace detail

/// Types from which tensors can be written and as which they can be read.
template <class T>
concept safetensors_value = !detail::safetensors_dtype<T>.empty();

/// The tensor `name` with these values (C order, a contiguous range), to which it refers. Local.
template <std::ranges::contiguous_range Values>
requires std::ranges::borrowed_range<Values> && safetensors_value<std::ranges::range_value_t<Values>>
    named_tensor tensor_of(std::string name, std::vector<global_index> shape, Values&& values) {
  using value_type = std::ranges::range_value_t<Values>;
  const std::span<const value_type> all(std::ranges::data(values), std::ranges::size(values));
  return {std::move(name), std::string(detail::safetensors_dtype<value_type>), std::move(shape),
          std::as_bytes(all)};
}

/// Writes the tensors, and the metadata if any, to the safetensors file `path`, whole or not at all
/// (write_whole_file). Tensors with wider values come first, so that all are aligned; the rest keep their
/// order. The same arguments give the same bytes. Local: one rank calls it. Throws input_error if a tensor's
/// shape and values disagree, if a name occurs twice, is __metadata__ or is not UTF-8, and if the file
/// cannot be written. Source: the format as https://github.com/huggingface/safetensors describes it.
inline void save_safetensors(const std::filesystem::path& path, std::span<const named_tensor> tensors,
                             const tensor_metadata& metadata = {}) {
  const std::string file = path.string();
  std::set<std::string_view> names{detail::metadata_key};
  std::vector<const named_tensor*> ordered;
  for (const named_tensor& tensor : tensors) {
    detail::check_tensor(file, tensor, tensor.bytes.size());
    if (!names.insert(tensor.name).second)
      detail::fail(file,
                   "two tensors, or a tensor and the metadata, have the name " + detail::quoted(tensor.name));
    ordered.push_back(&tensor);
  }
  std::ranges::stable_sort(ordered, std::ranges::greater(),
                           [](const named_tensor* tensor) { return detail::dtype_size(tensor->dtype); });
  const std::string head = detail::safetensors_head(file, ordered, metadata);
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(head))};
  for (const named_tensor* tensor : ordered) parts.push_back(tensor->bytes);
  write_whole_file(path, parts);
}

/// A safetensors file in memory. Moving it leaves its tensors where they are.
class safetensors_file {
 public:
  /// Reads the bytes of a file, which `name` denotes in messages. Throws input_error as load_safetensors
  /// does.
  safetensors_file(std::vector<std::byte> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (text.size() < 8)
      detail::fail(name_, "expected 8 bytes or more, found " + std::to_string(text.size()));
    std::uint64_t length = 0;
    std::memcpy(&length, text.data(), 8);
    if (text.starts_with("\x93NUMPY")) detail::fail(name_, "is a NumPy array, not a safetensors file");
    if (text.starts_with("PK\x03\x04")) detail::fail(name_, "is a zip archive, not a safetensors file");
    if (length > text.size() - 8)
      detail::fail(name_, "its header claims " + std::to_string(length) + " bytes, but only " +
                              std::to_string(text.size() - 8) + " follow");
    const std::string_view header = text.substr(8, length);
    // The parser skips a byte order mark and stops at a null byte.
    if (!header.starts_with('{')) detail::fail(name_, "its header is not a JSON object");
    if (const std::size_t null = header.find('\0'); null != header.npos)
      detail::fail(name_, "its header is not JSON from byte " + std::to_string(null + 1) + " on");
    detail::safetensors_header_reader reader(name_);
    nlohmann::json::sax_parse(header.begin(), header.end(), &reader);
    tensors_ =
        detail::placed_tensors(name_, std::move(reader.entries), std::span(bytes_).subspan(8 + length));
    metadata_ = std::move(reader.metadata);
  }
  safetensors_file(const safetensors_file&) = delete;
  safetensors_file(safetensors_file&&) = default;
  safetensors_file& operator=(const safetensors_file&) = delete;
  safetensors_file& operator=(safetensors_file&&) = default;

  const std::string& name() const { return name_; }

  /// In the order of their bytes.
  std::span<const named_tensor> tensors() const { return tensors_; }

  /// Empty if the file has none.
  const tensor_metadata& metadata() const { return metadata_; }

  bool contains(std::string_view tensor) const {
    return std::ranges::find(tensors_, tensor, &named_tensor::name) != tensors_.end();
  }

  /// Throws input_error if there is no such tensor.
  const named_tensor& at(std::string_view tensor) const {
    const auto found = std::ranges::find(tensors_, tensor, &named_tensor::name);
    if (found == tensors_.end()) detail::fail(name_, "has no tensor " + detail::quoted(tensor));
    return *found;
  }

  /// The values of a tensor in C order; F32 and F64 are read as float and double, rounded if T is narrower,
  /// and I64 as int64. Throws input_error if there is no such tensor or it has another type.
  template <safetensors_value T>
  std::vector<T> values(std::string_view tensor) const {
    const named_tensor& found = at(tensor);
    if constexpr (std::floating_point<T>) {
      if (found.dtype == "F32") return detail::values_of<T, float>(found.bytes);
      if (found.dtype == "F64") return detail::values_of<T, double>(found.bytes);
    } else {
      if (found.dtype == "I64") return detail::values_of<T, T>(found.bytes);
    }
    detail::fail(name_, "tensor " + detail::quoted(tensor) + " has the dtype " + found.dtype + ", expected " +
                            (std::floating_point<T> ? "F32 or F64" : "I64"));
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
  std::vector<named_tensor> tensors_;
  tensor_metadata metadata_;
};

/// The safetensors file `path`. Local. Throws input_error naming the file and, if one is at fault, the
/// tensor, if the file is missing or invalid: its header is truncated, is not JSON, repeats a key, or
/// has a tensor without dtype, shape or data_offsets; a shape is negative, too large, or does not fit
/// the bytes; tensors overlap, leave gaps, reach beyond the file or do not fill it. Tensors of an
/// unknown type are listed without values. Whatever the header claims, nothing larger than the file is
/// allocated.
inline safetensors_file load_safetensors(const std::filesystem::path& path) {
  const std::string name = detail::name_of_file(path);
  std::error_code status;
  const std::uintmax_t size = std::filesystem::file_size(path, status);
  std::ifstream stream(path, std::ios::binary);
  if (status || !stream) detail::fail(name, "cannot be opened");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream) detail::fail(name, "cannot be read");
  return {std::move(bytes), name};
}

}  // namespace partita::io
