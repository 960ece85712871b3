// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Labels in .npy files of any type of numbers.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/io/array.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"

namespace partita::io::detail {

/// use(mapped_array) for the labels in the file `name`. Throws input_error where they are no numbers.
template <class Use>
void with_label_numbers(const std::string& name, const npy_header& header, const Use& use) {
  const std::string_view type = header.descr;
  if (type == "<f8") return use(map_npy<double>(name));
  if (type == "<f4") return use(map_npy<float>(name));
  if (type == "|u1" || type == "|b1") return use(map_npy<std::uint8_t>(name));
  if (type == "|i1") return use(map_npy<std::int8_t>(name));
  if (type == "<i2") return use(map_npy<std::int16_t>(name));
  if (type == "<u2") return use(map_npy<std::uint16_t>(name));
  if (type == "<i4") return use(map_npy<std::int32_t>(name));
  if (type == "<u4") return use(map_npy<std::uint32_t>(name));
  if (type == "<u8") return use(map_npy<std::uint64_t>(name));
  const bool big_endian = type[0] == '>' && type.find_first_of("iuf") == 1;
  if (type == "<i8" || big_endian) return use(map_npy<std::int64_t>(name));
  const bool text = type[1] == 'U' || type[1] == 'S';
  fail(name, (text ? "holds texts" : "holds " + npy_type_name(type)) +
                 ", expected whole numbers such as int64, classes from 0" +
                 (text ? ", which numpy.unique(labels, return_inverse=True)[1] makes of texts" : ""));
}

/// The labels as int64; what is not a number means none. Throws input_error for what is no whole number in
/// its range.
template <class T>
array<std::int64_t> whole_labels(array<T> labels, const std::string& name) {
  if constexpr (std::same_as<T, std::int64_t>) return labels;
  std::vector<std::int64_t> whole(labels.size());
  for (std::size_t v = 0; v < labels.size(); ++v) {
    const bool none = std::floating_point<T> && labels[v] != labels[v];
    const double value = none ? -1 : static_cast<double>(labels[v]);
    if (!(std::abs(value) < 0x1p53) || value != std::floor(value))
      fail(name, "the label of vertex " + std::to_string(v) + " is " + std::to_string(labels[v]) +
                     ", expected a class, a whole number from 0, or -1 for none; labels.astype(int64) makes "
                     "classes of numbers");
    whole[v] = static_cast<std::int64_t>(value);
  }
  return whole;
}

}  // namespace partita::io::detail
