// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Labels in .npy files of any type of numbers.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/io/array.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"

namespace partita::io::detail {

/// The numbers in the .npy file `name`, of any type, in C order. Throws input_error if they are not numbers.
class label_numbers {
 public:
  label_numbers(const std::string& name, const npy_header& header)
      : kind_(header.descr.size() == 3 ? header.descr[1] : '?'), bytes_(header.item_size) {
    const std::string_view type = header.descr;
    const bool text = kind_ == 'U' || kind_ == 'S' || type[1] == 'U' || type[1] == 'S';
    const bool number = type.size() == 3 && (kind_ == 'i' || kind_ == 'u' || kind_ == 'b' ||
                                             (kind_ == 'f' && (bytes_ == 4 || bytes_ == 8)));
    if (!number)
      fail(name, (text ? "holds texts" : "holds " + npy_type_name(type)) +
                     ", expected whole numbers such as int64, classes from 0" +
                     (text ? ", which numpy.unique(labels, return_inverse=True)[1] makes of texts" : ""));
    const npy_type stored{type, bytes_};
    if (auto file = mapped_file(name, header, stored)) {
      const std::byte* const begin = file.get() + header.data_offset;
      const auto size = static_cast<std::size_t>(header.count()) * bytes_;
      values_ = {std::shared_ptr<const std::byte>(std::move(file), begin), size, forget_pages};
      return;
    }
    std::vector<std::byte> read;
    with_npy_file(name, [&](const npy_source& from) {
      read_rows(stored, {}, from, [&](std::size_t count) {
        read.resize(count * bytes_);
        return read.data();
      });
    });
    values_ = std::move(read);
  }

  bool are_floating() const { return kind_ == 'f'; }
  std::size_t size() const { return values_.size() / bytes_; }
  /// The k-th number, exact if it is less than 2^53.
  double operator[](std::size_t k) const {
    if (kind_ == 'f') return bytes_ == 8 ? at<double>(k) : static_cast<double>(at<float>(k));
    return kind_ == 'i' ? static_cast<double>(signed_at(k)) : static_cast<double>(unsigned_at(k));
  }
  /// The k-th number as messages show it.
  std::string text(std::size_t k) const {
    return kind_ == 'f'   ? std::to_string((*this)[k])
           : kind_ == 'i' ? std::to_string(signed_at(k))
                          : std::to_string(unsigned_at(k));
  }

 private:
  template <class T>
  T at(std::size_t k) const {
    T value;
    std::memcpy(&value, values_.data() + k * sizeof(T), sizeof(T));
    return value;
  }
  std::int64_t signed_at(std::size_t k) const {
    return bytes_ == 8   ? at<std::int64_t>(k)
           : bytes_ == 4 ? at<std::int32_t>(k)
           : bytes_ == 2 ? at<std::int16_t>(k)
                         : at<std::int8_t>(k);
  }
  std::uint64_t unsigned_at(std::size_t k) const {
    return bytes_ == 8   ? at<std::uint64_t>(k)
           : bytes_ == 4 ? at<std::uint32_t>(k)
           : bytes_ == 2 ? at<std::uint16_t>(k)
                         : at<std::uint8_t>(k);
  }

  char kind_;  ///< as in a header's descr: i, u, b or f
  std::size_t bytes_;
  array<std::byte> values_;
};

/// The labels as int64; a value that is not a number means no label. Throws input_error for a value that is
/// not a whole number in its range.
inline array<std::int64_t> whole_labels(const std::string& name, const npy_header& header) {
  if (header.descr == "<i8") return map_npy<std::int64_t>(name).values;
  const label_numbers labels(name, header);
  std::vector<std::int64_t> whole(labels.size());
  for (std::size_t v = 0; v < labels.size(); ++v) {
    const double found = labels[v], value = found != found ? -1 : found;
    if (!(std::abs(value) < 0x1p53) || value != std::floor(value))
      fail(name, "the label of vertex " + std::to_string(v) + " is " + labels.text(v) +
                     ", expected a class, a whole number from 0, or -1 for none; labels.astype(int64) makes "
                     "classes of numbers");
    whole[v] = static_cast<std::int64_t>(value);
  }
  return whole;
}

/// Throws input_error if the label of vertex v is not a class, or is missing although the split needs one.
/// `floating`: as in the file.
inline void require_label(const std::string& name, std::size_t v, std::int64_t label, global_index vertices,
                          std::uint8_t split, bool floating) {
  const auto which = [&] { return "label " + std::to_string(label) + " of vertex " + std::to_string(v); };
  if (label < -1 || label >= vertices)
    fail(name, which() + " is outside the classes, of which there are at most as many as vertices");
  if (label == -1 && split != 0)
    fail(name, (floating ? "label nan or -1 of vertex " + std::to_string(v) : which()) +
                   " means none, but the split of that vertex is " + std::to_string(split));
}

/// The types of edges as int64. Throws input_error unless there is one whole number for each of `edges`.
inline array<std::int64_t> edge_types(const std::string& name, global_index edges) {
  const npy_header header = read_npy_header(name);
  if (header.shape.size() != 1 || header.shape.front() != edges)
    fail(name, "expected " + std::to_string(edges) +
                   " types, one for each row of edges.npy, found the shape " + shape_text(header.shape));
  if (header.descr == "<i8") return map_npy<std::int64_t>(name).values;
  const label_numbers types(name, header);
  if (types.are_floating())
    fail(name,
         "holds " + npy_type_name(header.descr) + ", expected whole numbers such as int64, types from 0");
  std::vector<std::int64_t> whole(types.size());
  for (std::size_t e = 0; e < whole.size(); ++e) whole[e] = static_cast<std::int64_t>(types[e]);
  return whole;
}

/// The 0/1 matrix as bytes.
inline array<std::uint8_t> label_bytes(const std::string& name, const npy_header& header,
                                       const label_numbers& matrix) {
  if (header.item_size == 1 && header.descr[1] != 'i') return map_npy<std::uint8_t>(name).values;
  std::vector<std::uint8_t> bytes(matrix.size());
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = matrix[k] != 0;
  return bytes;
}

}  // namespace partita::io::detail
