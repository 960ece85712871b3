// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes NumPy .npy files: ten little-endian types, format versions 1, 2 and 3.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/function_reference.hpp"
#include "partita/io/npy_header.hpp"

namespace partita::io {

/// An array read from a file, in C order (last index varies fastest).
template <class T>
struct npy_array {
  std::vector<global_index> shape;  ///< empty for a scalar
  std::vector<T> values;            ///< product of the shape

  /// The first extent; 1 for a scalar.
  global_index rows() const { return shape.empty() ? 1 : shape.front(); }

  /// Values per row: the product of the other extents, 1 for a vector.
  global_index cols() const {
    global_index product = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
    return product;
  }
};

namespace detail {

/// Unsigned values that were read as signed, from row `first` on, must be less than 2^63.
inline void check_signed(std::span<const std::int64_t> values, std::size_t first, std::size_t cols,
                         std::string_view name) {
  const auto bad = std::ranges::find_if(values, [](std::int64_t value) { return value < 0; });
  if (bad == values.end()) return;
  const auto k = static_cast<std::size_t>(bad - values.begin());
  fail(name, "row " + std::to_string(first + k / cols) +
                 (cols > 1 ? ", column " + std::to_string(k % cols) + "," : "") + " is " +
                 std::to_string(static_cast<std::uint64_t>(*bad)) + ", larger than " +
                 std::to_string(std::numeric_limits<std::int64_t>::max()));
}

/// A type of values, as in a header.
struct npy_type {
  std::string_view descr;
  std::size_t bytes = 0;  ///< of a value
};
template <class T>
inline constexpr npy_type npy_type_of{npy_descr<T>, sizeof(T)};

/// The content of a file: read(position, to, bytes) copies bytes from it.
struct npy_source {
  const npy_header& header;
  std::uintmax_t size;  ///< of the file, in bytes
  const std::string& name;
  base::function_reference<void(std::size_t, std::byte*, std::size_t)> read;
};

/// Whether it holds whole numbers, each of which is also a value of a wider type.
inline bool is_narrower_integer(const npy_header& header, npy_type type) {
  const char kind = header.descr[1], wanted = type.descr[1];
  return header.item_size < type.bytes && (wanted == 'i' || wanted == 'u') &&
         (kind == 'u' || kind == wanted) && (kind == 'i' || kind == 'u');
}

/// Reads all rows, or only the rows `asked` for, into room(count), which provides memory for `count` values;
/// returns their shape.
inline std::vector<global_index> read_rows(npy_type type, std::optional<interval> asked,
                                           const npy_source& from,
                                           base::function_reference<std::byte*(std::size_t)> room) {
  const auto& [header, size, name, read] = from;
  const bool bytes_as_bool = type.descr == "|u1" && header.descr == "|b1";
  const bool unsigned_as_signed = type.descr == "<i8" && header.descr == "<u8";
  if (header.descr[0] == '>' && header.item_size > 1)
    fail(name, "holds big-endian values (" + header.descr + "), only little-endian ones are read");
  if (header.descr != type.descr && !bytes_as_bool && !unsigned_as_signed)
    fail(name, "expected " + npy_type_name(type.descr) + " values, found " + npy_type_name(header.descr) +
                   (is_narrower_integer(header, type)
                        ? ", which .astype(\"" + npy_type_name(type.descr) + "\") of the array makes"
                        : ""));
  check_npy_size(header, size - header.data_offset, name);
  const global_index all = header.shape.empty() ? 0 : header.shape.front();
  const interval asked_rows = asked.value_or(interval{0, all});
  if (asked_rows.begin < 0 || asked_rows.end < asked_rows.begin || asked_rows.end > all)
    fail(name, "rows " + std::to_string(asked_rows.begin) + " to " + std::to_string(asked_rows.end) +
                   " were requested, but it has " + std::to_string(all) + " rows");
  npy_array<std::byte> shape{header.shape, {}};
  if (!shape.shape.empty()) shape.shape.front() = asked_rows.size();
  const auto rows = static_cast<std::size_t>(shape.rows()), cols = static_cast<std::size_t>(shape.cols());
  const auto first = static_cast<std::size_t>(asked_rows.begin);
  std::byte* const values = room(rows * cols);
  const auto get = [&](std::size_t position, std::byte* to, std::size_t count) {
    read(header.data_offset + position * type.bytes, to, count * type.bytes);
  };
  if (rows * cols == 0) return shape.shape;
  if (!header.fortran_order || header.shape.size() < 2) {
    get(first * cols, values, rows * cols);
  } else {
    std::vector<std::byte> column(rows * type.bytes);
    for (std::size_t j = 0; j < cols; ++j) {
      get(j * static_cast<std::size_t>(all) + first, column.data(), rows);
      for (std::size_t i = 0; i < rows; ++i)
        std::memcpy(values + (i * cols + j) * type.bytes, column.data() + i * type.bytes, type.bytes);
    }
  }
  if (unsigned_as_signed)
    check_signed({reinterpret_cast<const std::int64_t*>(values), rows * cols}, first, cols, name);
  return shape.shape;
}

/// The same as an array.
template <npy_value T>
npy_array<T> read_array(std::optional<interval> asked, const npy_source& from) {
  npy_array<T> result;
  result.shape = read_rows(npy_type_of<T>, asked, from, [&](std::size_t count) {
    result.values.resize(count);
    return reinterpret_cast<std::byte*>(result.values.data());
  });
  return result;
}

/// Calls use() with the .npy file `path`.
inline void with_npy_file(const std::filesystem::path& path,
                          base::function_reference<void(const npy_source&)> use) {
  const std::string name = name_of_file(path);
  std::error_code status;
  const std::uintmax_t size = std::filesystem::file_size(path, status);
  std::ifstream stream(path, std::ios::binary);
  if (status || !stream) fail(name, "cannot be opened");
  const auto read = [&](std::size_t position, std::byte* to, std::size_t bytes) {
    stream.seekg(static_cast<std::streamoff>(position));
    stream.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!stream) fail(name, "cannot be read");
  };
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(size, 12 + longest_npy_header)));
  read(0, bytes.data(), bytes.size());
  const npy_header header = parse_npy_header(bytes, name);
  use({header, size, name, read});
}

template <npy_value T>
npy_array<T> read_npy_file(const std::filesystem::path& path, std::optional<interval> rows) {
  npy_array<T> result;
  with_npy_file(path, [&](const npy_source& file) { result = read_array<T>(rows, file); });
  return result;
}

}  // namespace detail

/// The header of the .npy file `path`; no values are read. Throws input_error if the file is missing or its
/// header is malformed.
inline npy_header read_npy_header(const std::filesystem::path& path) {
  npy_header header;
  detail::with_npy_file(path, [&](const detail::npy_source& file) { header = file.header; });
  return header;
}

/// The array in `bytes`, a whole .npy file in memory; `name` denotes it in messages. Throws input_error as
/// read_npy does.
template <npy_value T>
npy_array<T> parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  const auto read = [&](std::size_t position, std::byte* to, std::size_t size) {
    std::memcpy(to, bytes.data() + position, size);
  };
  const npy_header header = parse_npy_header(bytes, name);
  const std::string text(name);
  return detail::read_array<T>({}, {header, bytes.size(), text, read});
}

/// The given rows of the .npy file `path`, a vector or a matrix, without reading the others. Shape: that of
/// the file, with first extent rows.size(); Fortran order is converted to C order. Throws input_error as
/// read_npy does, and if the rows are out of range.
template <npy_value T>
npy_array<T> read_npy_rows(const std::filesystem::path& path, interval rows) {
  return detail::read_npy_file<T>(path, rows);
}

/// The array in the .npy file `path`, whose element type must be exactly T (uint8 also reads NumPy's bool,
/// and int64 reads uint64 if all values fit in int64). Shape: that of the file; two-dimensional arrays in
/// Fortran order are converted to C order. Throws input_error if the file is missing, malformed,
/// big-endian, of another type, or inconsistent with its shape; sizes are checked before anything is
/// allocated.
template <npy_value T>
npy_array<T> read_npy(const std::filesystem::path& path) {
  return detail::read_npy_file<T>(path, {});
}

/// The bytes before the values of a .npy file of this shape, in format version 1, for writing it piece by
/// piece; `name` denotes the file in messages. Throws input_error unless the values are `bytes` long.
template <npy_value T>
std::string npy_header_text(const std::vector<global_index>& shape, std::size_t bytes,
                            std::string_view name) {
  std::string header =
      "{'descr': '" + std::string(detail::npy_descr<T>) + "', 'fortran_order': False, 'shape': (";
  for (global_index extent : shape) header += std::to_string(extent) + ", ";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const std::size_t length = header.size();
  header.insert(header.begin(), {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 255),
                                 static_cast<char>(length >> 8)});
  detail::check_npy_size(parse_npy_header(std::as_bytes(std::span(header)), name), bytes, name);
  return header;
}

/// Writes `values` (C order, a contiguous range) to the .npy file `path` with the given shape, in format
/// version 1. Throws input_error if shape and values disagree or the file cannot be written.
template <std::ranges::contiguous_range Values>
requires npy_value<std::ranges::range_value_t<Values>>
void write_npy(const std::filesystem::path& path, const std::vector<global_index>& shape,
               const Values& values) {
  using value_type = std::ranges::range_value_t<Values>;
  const std::string name = path.string();
  const std::size_t bytes = std::ranges::size(values) * sizeof(value_type);
  const std::string header = npy_header_text<value_type>(shape, bytes, name);
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(header.data(), static_cast<std::streamsize>(header.size()));
  stream.write(reinterpret_cast<const char*>(std::ranges::data(values)), static_cast<std::streamsize>(bytes));
  stream.close();
  if (!stream) detail::fail(name, "cannot be written");
}

}  // namespace partita::io
