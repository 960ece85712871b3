#pragma once
/// Reads and writes NumPy .npy files: little-endian values of five types, format versions 1, 2 and 3.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/io/npy_header.hpp"

namespace partita::io {

static_assert(std::endian::native == std::endian::little,
              "partita reads files on little-endian machines only");

/// An npy_array out of a file: values in C order (the last index runs fastest).
template <class T>
struct npy_array {
  std::vector<global_index> shape;  ///< empty for a single value
  std::vector<T> values;            ///< as many as the product of the shape

  /// The first size of the shape; 1 for a single value.
  global_index rows() const { return shape.empty() ? 1 : shape.front(); }

  /// Values in one row: the product of the other sizes, so 1 for a vector.
  global_index cols() const {
    global_index product = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
    return product;
  }
};

namespace detail {

template <class T>
constexpr std::string_view npy_descr = "";
template <>
inline constexpr std::string_view npy_descr<float> = "<f4";
template <>
inline constexpr std::string_view npy_descr<double> = "<f8";
template <>
inline constexpr std::string_view npy_descr<std::int64_t> = "<i8";
template <>
inline constexpr std::string_view npy_descr<std::int32_t> = "<i4";
template <>
inline constexpr std::string_view npy_descr<std::uint8_t> = "|u1";

}  // namespace detail

/// The types of values that .npy files are read and written in.
template <class T>
concept npy_value = !detail::npy_descr<T>.empty();

namespace detail {

template <npy_value T>
void check_npy_type(const npy_header& header, std::string_view name) {
  const bool bytes_as_bool = npy_descr<T> == "|u1" && header.descr == "|b1";
  if (header.descr == npy_descr<T> || bytes_as_bool) return;
  if (header.descr[0] == '>' && header.item_size > 1)
    fail(name, "holds big-endian values (" + header.descr + "), only little-endian ones are read");
  fail(name, "expected " + npy_type_name(npy_descr<T>) + " values, found " + npy_type_name(header.descr));
}

inline void check_npy_size(const npy_header& header, std::uintmax_t found, std::string_view name) {
  const auto expected = static_cast<std::uintmax_t>(header.count()) * header.item_size;
  if (found != expected)
    fail(name, "expected " + std::to_string(expected) + " bytes of data for its shape " +
                   shape_text(header.shape) + ", found " + std::to_string(found));
  if (header.fortran_order && header.shape.size() > 2)
    fail(name, "is in Fortran order with " + std::to_string(header.shape.size()) +
                   " dimensions, which is read for two at most");
}

/// Column-major rows x cols values in row-major order.
template <class T>
std::vector<T> row_major(const std::vector<T>& values, global_index rows, global_index cols) {
  std::vector<T> result(values.size());
  std::size_t k = 0;
  for (global_index j = 0; j < cols; ++j)
    for (global_index i = 0; i < rows; ++i) result[static_cast<std::size_t>(i * cols + j)] = values[k++];
  return result;
}

/// A .npy file whose header is read.
struct npy_file {
  explicit npy_file(const std::filesystem::path& path) : name(path.string()) {
    std::error_code status;
    if (!std::filesystem::exists(path, status)) fail(name, "no such file");
    if (!std::filesystem::is_regular_file(path, status)) fail(name, "is not a regular file");
    const std::uintmax_t size = std::filesystem::file_size(path, status);
    stream.open(path, std::ios::binary);
    if (status || !stream) fail(name, "cannot be opened");
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uintmax_t>(size, npy_prefix_size)));
    read(bytes.data(), bytes.size());
    const std::size_t offset = npy_data_offset(bytes, name);
    bytes.resize(static_cast<std::size_t>(std::min<std::uintmax_t>(size, offset)));
    seek(0);
    read(bytes.data(), bytes.size());
    header = parse_npy_header(bytes, name);
    data_size = size - header.data_offset;
  }

  void seek(std::size_t offset) { stream.seekg(static_cast<std::streamoff>(offset)); }

  void read(void* to, std::size_t bytes) {
    stream.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!stream || static_cast<std::size_t>(stream.gcount()) != bytes) fail(name, "cannot be read");
  }

  std::string name;
  std::ifstream stream;
  npy_header header;
  std::uintmax_t data_size = 0;
};

}  // namespace detail

/// The header of the .npy file `path`; no value is read.
/// Throws input_error when the file is missing or its header is malformed.
inline npy_header read_npy_header(const std::filesystem::path& path) {
  return detail::npy_file(path).header;
}

/// The npy_array in `bytes`, a whole .npy file in memory; `name` is what messages call it.
/// Throws input_error as read_npy does.
template <npy_value T>
npy_array<T> parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  npy_header header = parse_npy_header(bytes, name);
  detail::check_npy_type<T>(header, name);
  const auto data = bytes.subspan(header.data_offset);
  detail::check_npy_size(header, data.size(), name);
  npy_array<T> result{std::move(header.shape), std::vector<T>(data.size() / sizeof(T))};
  if (!data.empty()) std::memcpy(result.values.data(), data.data(), data.size());
  if (header.fortran_order && result.shape.size() == 2)
    result.values = detail::row_major(result.values, result.rows(), result.cols());
  return result;
}

/// The rows `rows` of the .npy file `path`, a vector or a matrix, without reading the others.
/// Shape: that of the file with rows.size() in the first place; a file in Fortran order is converted.
/// Throws input_error as read_npy does, and when the file does not have these rows.
template <npy_value T>
npy_array<T> read_npy_rows(const std::filesystem::path& path, interval rows) {
  detail::npy_file file(path);
  const npy_header& header = file.header;
  detail::check_npy_type<T>(header, file.name);
  detail::check_npy_size(header, file.data_size, file.name);
  npy_array<T> result{header.shape, {}};
  const global_index all = header.shape.empty() ? 0 : header.shape.front();
  if (rows.begin < 0 || rows.end < rows.begin || rows.end > all)
    detail::fail(file.name, "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) +
                                   " are asked for, it has " + std::to_string(all) + " rows");
  if (!result.shape.empty()) result.shape.front() = rows.size();
  const auto cols = static_cast<std::size_t>(result.cols());
  const auto count = static_cast<std::size_t>(rows.size());
  const auto first = static_cast<std::size_t>(rows.begin);
  result.values.resize(count * cols);
  if (result.values.empty()) return result;
  const bool by_columns = header.fortran_order && header.shape.size() == 2;
  const std::size_t pieces = by_columns ? cols : 1;
  const std::size_t length = result.values.size() / pieces;
  for (std::size_t k = 0; k < pieces; ++k) {
    const std::size_t position = by_columns ? k * static_cast<std::size_t>(all) + first : first * cols;
    file.seek(header.data_offset + position * sizeof(T));
    file.read(result.values.data() + k * length, length * sizeof(T));
  }
  if (by_columns) result.values = detail::row_major(result.values, rows.size(), result.cols());
  return result;
}

/// The npy_array in the .npy file `path`, whose values must be exactly T (uint8 also reads NumPy's bool).
/// Shape: that of the file; two-dimensional arrays in Fortran order are converted to C order.
/// Throws input_error when the file is missing, malformed, big-endian, of another type, or longer or shorter
/// than its shape says; nothing is allocated before the sizes are checked.
template <npy_value T>
npy_array<T> read_npy(const std::filesystem::path& path) {
  detail::npy_file file(path);
  detail::check_npy_type<T>(file.header, file.name);
  detail::check_npy_size(file.header, file.data_size, file.name);
  npy_array<T> result{file.header.shape, std::vector<T>(static_cast<std::size_t>(file.header.count()))};
  file.read(result.values.data(), result.values.size() * sizeof(T));
  if (file.header.fortran_order && result.shape.size() == 2)
    result.values = detail::row_major(result.values, result.rows(), result.cols());
  return result;
}

/// Writes `values` (C order, a contiguous range) as the .npy file `path` of the given shape, format
/// version 1. Throws input_error when shape and values disagree and when the file cannot be written.
template <std::ranges::contiguous_range Values>
requires npy_value<std::ranges::range_value_t<Values>>
void write_npy(const std::filesystem::path& path, const std::vector<global_index>& shape,
               const Values& values) {
  using value_type = std::ranges::range_value_t<Values>;
  const std::string name = path.string();
  std::string header =
      "{'descr': '" + std::string(detail::npy_descr<value_type>) + "', 'fortran_order': False, 'shape': (";
  for (global_index extent : shape) header += std::to_string(extent) + ", ";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const std::size_t length = header.size();
  header.insert(header.begin(), {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 255),
                                 static_cast<char>(length >> 8)});
  const std::size_t bytes = std::ranges::size(values) * sizeof(value_type);
  detail::check_npy_size(parse_npy_header(std::as_bytes(std::span(header)), name), bytes, name);
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(header.data(), static_cast<std::streamsize>(header.size()));
  stream.write(reinterpret_cast<const char*>(std::ranges::data(values)), static_cast<std::streamsize>(bytes));
  stream.close();
  if (!stream) detail::fail(name, "cannot be written");
}

}  // namespace partita::io
