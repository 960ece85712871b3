// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The header of a safetensors file: a JSON object in which every name has a type, a shape and a range of
/// bytes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

/// A tensor in a safetensors file, or a tensor to be written to one.
struct named_tensor {
  std::string name;
  std::string dtype;                 ///< as the format spells it: "F32", "F64", "I64", ...
  std::vector<global_index> shape;   ///< empty for a scalar
  std::span<const std::byte> bytes;  ///< the values in C order, little-endian, at any address; not owned
};

/// Text for readers of the file, by key.
using tensor_metadata = std::map<std::string, std::string>;

namespace detail {

inline constexpr std::string_view metadata_key = "__metadata__";

/// Bytes per value of this type; 0 if there is no such type.
inline std::size_t dtype_size(std::string_view dtype) {
  constexpr std::array<std::string_view, 5> one{"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"};
  if (std::ranges::find(one, dtype) != one.end()) return 1;
  if (dtype == "BF16" || dtype == "I16" || dtype == "U16" || dtype == "F16") return 2;
  if (dtype == "I32" || dtype == "U32" || dtype == "F32") return 4;
  return dtype == "I64" || dtype == "U64" || dtype == "F64" || dtype == "C64" ? 8 : 0;
}

/// Rejects, for the file `file`, a tensor of an unknown type or one whose bytes do not match its shape.
inline void check_tensor(std::string_view file, const named_tensor& tensor, std::size_t bytes) {
  const std::string which = "tensor " + detail::quoted(tensor.name);
  std::size_t expected = dtype_size(tensor.dtype);
  if (expected == 0) fail(file, which + " has the unknown dtype " + detail::quoted(tensor.dtype));
  for (const global_index extent : tensor.shape) {
    if (extent < 0) fail(file, "the shape of " + which + " has the negative size " + std::to_string(extent));
    const auto factor = static_cast<std::size_t>(std::max<global_index>(extent, 1));
    if (expected > static_cast<std::size_t>(std::numeric_limits<global_index>::max()) / factor)
      fail(file, "the shape " + shape_text(tensor.shape) + " of " + which + " is too large");
    expected *= factor;
  }
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) expected = 0;
  if (bytes != expected)
    fail(file, "expected " + std::to_string(expected) + " bytes for the shape " + shape_text(tensor.shape) +
                   " of " + which + ", found " + std::to_string(bytes));
}

/// Reads a header from the events of a JSON parser, and rejects at once what no header has. A document in
/// memory would drop repeated keys, and may take many times the memory of its text. The functions are those
/// of nlohmann::json_sax.
class safetensors_header_reader {
 public:
  explicit safetensors_header_reader(std::string_view file) : file_(file) {}

  struct entry {
    named_tensor tensor;
    std::vector<std::uint64_t> offsets;  ///< begin and end, counted from the end of the header
  };
  std::vector<entry> entries;
  tensor_metadata metadata;

  bool start_object(std::size_t) {
    if (at_ == place::file) return go(place::names);
    if (at_ == place::metadata) return go(place::metadata_keys);
    if (at_ == place::tensor) return go(place::fields);
    refuse();
  }
  bool key(const std::string& name) {
    if (at_ == place::fields) return start_field(name);
    key_ = name;
    if (at_ == place::metadata_keys) {
      if (metadata.contains(name))
        fail(file_, "the key " + detail::quoted(name) + " of its metadata is there twice");
      return go(place::metadata_text);
    }
    if (!names_.insert(name).second) fail(file_, "the key " + detail::quoted(name) + " is there twice");
    if (name == metadata_key) return go(place::metadata);
    entries.emplace_back().tensor.name = name;
    fields_.clear();
    return go(place::tensor);
  }
  bool end_object() {
    if (at_ == place::metadata_keys) return go(place::names);
    if (at_ == place::fields) {
      if (fields_.size() < 3) fail(file_, which() + " lacks one of dtype, shape and data_offsets");
      return go(place::names);
    }
    return go(place::end);
  }
  bool start_array(std::size_t) {
    if (at_ == place::shape) return go(place::shape_sizes);
    if (at_ == place::offsets) return go(place::offsets_numbers);
    refuse();
  }
  bool end_array() {
    if (at_ == place::offsets_numbers && entries.back().offsets.size() != 2) refuse();
    return go(place::fields);
  }
  bool string(const std::string& text) {
    if (at_ == place::metadata_text) {
      metadata.emplace(key_, text);
      return go(place::metadata_keys);
    }
    if (at_ != place::dtype) refuse();
    entries.back().tensor.dtype = text;
    return go(place::fields);
  }
  bool number_unsigned(std::uint64_t number) {
    entry* const last = entries.empty() ? nullptr : &entries.back();
    if (at_ == place::offsets_numbers && last->offsets.size() < 2) {
      last->offsets.push_back(number);
      return true;
    }
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<global_index>::max());
    if (at_ != place::shape_sizes || number > largest) refuse();
    if (last->tensor.shape.size() == 64) fail(file_, "the shape of " + which() + " has too many dimensions");
    last->tensor.shape.push_back(static_cast<global_index>(number));
    return true;
  }
  bool number_integer(std::int64_t number) {
    if (number < 0) refuse();
    return number_unsigned(static_cast<std::uint64_t>(number));
  }
  bool number_float(double, const std::string&) { refuse(); }
  bool boolean(bool) { refuse(); }
  bool null() { refuse(); }
  bool binary(nlohmann::json::binary_t&) { refuse(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    fail(file_, "its header is not JSON from byte " + std::to_string(position) + " on");
  }

 private:
  enum class place : std::uint8_t {
    file,
    names,
    metadata,
    metadata_keys,
    metadata_text,
    tensor,
    fields,
    dtype,
    shape,
    shape_sizes,
    offsets,
    offsets_numbers,
    end
  };

  bool go(place next) {
    at_ = next;
    return true;
  }

  bool start_field(const std::string& name) {
    if (!fields_.insert(name).second)
      fail(file_, which() + " has the field " + detail::quoted(name) + " twice");
    if (name == "dtype") return go(place::dtype);
    if (name == "shape") return go(place::shape);
    if (name == "data_offsets") return go(place::offsets);
    fail(file_, which() + " has the unknown field " + detail::quoted(name));
  }

  std::string which() const { return "tensor " + detail::quoted(entries.back().tensor.name); }

  /// What should have come here.
  [[noreturn]] void refuse() const {
    switch (at_) {
      case place::metadata:
      case place::metadata_keys:
      case place::metadata_text:
        fail(file_, "its metadata are not an object of texts");
      case place::tensor:
        fail(file_, which() + " is not described by an object");
      case place::dtype:
        fail(file_, "the dtype of " + which() + " is not a text");
      case place::shape:
      case place::shape_sizes:
        fail(file_, "the shape of " + which() + " is not a list of whole numbers from 0 to 2^63 - 1");
      case place::offsets:
      case place::offsets_numbers:
        fail(file_, "the data_offsets of " + which() + " are not a list of two whole numbers from 0 on");
      default:
        fail(file_, "its header is not a JSON object");
    }
  }

  std::string_view file_;
  place at_ = place::file;
  std::string key_;
  std::set<std::string> names_, fields_;  ///< of the header, and of the tensor that is being read
};

/// Gives each tensor its part of `data`, in the order of the parts, which must be contiguous. Parts of an
/// unknown type may have any number of bytes.
inline std::vector<named_tensor> placed_tensors(std::string_view file,
                                                std::vector<safetensors_header_reader::entry> entries,
                                                std::span<const std::byte> data) {
  std::ranges::stable_sort(entries, {}, &safetensors_header_reader::entry::offsets);
  std::vector<named_tensor> tensors;
  std::size_t at = 0;
  for (auto& [tensor, offsets] : entries) {
    const std::uint64_t begin = offsets[0], end = offsets[1];
    const std::string which = "tensor " + detail::quoted(tensor.name);
    const std::string where = " bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                              std::to_string(data.size());
    if (end < begin || end > data.size()) fail(file, which + " is said to be at" + where);
    if (dtype_size(tensor.dtype) > 0) check_tensor(file, tensor, end - begin);  // newer ones only go by
    if (begin < at) fail(file, which + " overlaps the one before it, at" + where);
    if (begin > at)
      fail(file, "there is no tensor at byte " + std::to_string(at) + ", before " + which + " at" + where);
    tensor.bytes = data.subspan(begin, end - begin);
    at = end;
    tensors.push_back(std::move(tensor));
  }
  if (at != data.size()) fail(file, std::to_string(data.size() - at) + " bytes follow the last tensor");
  return tensors;
}

}  // namespace detail

}  // namespace partita::io
