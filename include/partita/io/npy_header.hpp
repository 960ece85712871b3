// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The headers of NumPy .npy files: ten little-endian types, format versions 1, 2 and 3.

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

static_assert(std::endian::native == std::endian::little,
              "partita reads files on little-endian machines only");

/// The header of a .npy file. The sizes of a parsed header are validated: their products do not overflow.
struct npy_header {
  std::string descr;                ///< NumPy type string with byte order, for example "<f4"
  bool fortran_order = false;       ///< whether the first index varies fastest
  std::vector<global_index> shape;  ///< empty for a scalar
  std::size_t data_offset = 0;      ///< bytes before the first value
  std::size_t item_size = 0;        ///< bytes of one value

  /// The number of values.
  global_index count() const {
    global_index product = 1;
    for (global_index extent : shape) product *= extent;
    return product;
  }
};

namespace detail {

template <class T>
constexpr std::string_view npy_descr = std::same_as<T, float>           ? "<f4"
                                       : std::same_as<T, double>        ? "<f8"
                                       : std::same_as<T, std::int64_t>  ? "<i8"
                                       : std::same_as<T, std::int32_t>  ? "<i4"
                                       : std::same_as<T, std::int16_t>  ? "<i2"
                                       : std::same_as<T, std::int8_t>   ? "|i1"
                                       : std::same_as<T, std::uint64_t> ? "<u8"
                                       : std::same_as<T, std::uint32_t> ? "<u4"
                                       : std::same_as<T, std::uint16_t> ? "<u2"
                                       : std::same_as<T, std::uint8_t>  ? "|u1"
                                                                        : "";

inline constexpr std::uintmax_t longest_npy_header = std::uintmax_t{1} << 20;

/// "float32" for "<f4" and the like; the quoted descr for any other type.
inline std::string npy_type_name(std::string_view descr) {
  if (descr.size() == 3 && descr[2] >= '1' && descr[2] <= '8') {
    if (descr[1] == 'b') return "bool";
    for (const std::string name : {"float", "int", "uint"})
      if (descr[1] == name[0]) return name + std::to_string(8 * (descr[2] - '0'));
  }
  return quoted(descr);
}

inline std::string shape_text(const std::vector<global_index>& shape) {
  if (shape.empty()) return "()";
  if (shape.size() == 1) return '(' + std::to_string(shape.front()) + ",)";
  std::string text = std::to_string(shape.front());
  for (std::size_t d = 1; d < shape.size(); ++d) text += " x " + std::to_string(shape[d]);
  return text;
}

/// Parses the Python dictionary literal of a header, limited to what NumPy writes.
struct npy_dictionary {
  std::string_view text, name;
  std::size_t at = 0;

  void read(npy_header& header) {
    const char* const all_keys = "the keys descr, fortran_order and shape, once each";
    std::string_view missing[] = {"descr", "fortran_order", "shape"};
    list("{", "}", [&] {
      const std::string key = string();
      expect(":");
      std::string_view* const found = std::find(std::begin(missing), std::end(missing), key);
      if (key.empty() || found == std::end(missing)) malformed(all_keys);
      *found = {};
      if (key == "descr") header.descr = string();
      if (key == "fortran_order") header.fortran_order = boolean();
      if (key == "shape") list("(", ")", [&] { header.shape.push_back(size_after(header.shape.size())); });
    });
    accept("\n");
    if (at != text.size()) malformed("nothing after the dictionary");
    for (const std::string_view key : missing)
      if (!key.empty()) malformed(all_keys);
  }

  [[noreturn]] void malformed(const std::string& expected) const {
    fail(name, "malformed header, expected " + expected);
  }
  [[noreturn]] void malformed_here(const std::string& expected) const {
    malformed(expected + " at byte " + std::to_string(at) + " of its dictionary");
  }

  /// Skips white space, then `word` if it comes next; returns whether it did.
  bool accept(std::string_view word) {
    at = std::min(text.find_first_not_of(" \n", at), text.size());
    const bool found = text.substr(at).starts_with(word);
    if (found) at += word.size();
    return found;
  }

  void expect(const std::string& word) {
    if (!accept(word)) malformed_here("'" + word + "'");
  }

  template <class F>
  void list(const std::string& begin, const std::string& end, F item) {
    expect(begin);
    while (!accept(end)) {
      item();
      if (!accept(",")) return expect(end);
    }
  }

  std::string string() {
    const char quote = accept("'") ? '\'' : accept("\"") ? '"' : '\0';
    const std::size_t end = quote == '\0' ? text.npos : text.find(quote, at);
    if (end == text.npos) malformed_here("a quoted string");
    const std::string value(text.substr(at, end - at));
    at = end + 1;
    return value;
  }

  bool boolean() {
    const bool value = accept("True");
    if (!value && !accept("False")) malformed("True or False for fortran_order");
    return value;
  }

  /// The next extent of a shape that already has `dimensions` of them.
  global_index size_after(std::size_t dimensions) {
    accept("");
    global_index value = 0;
    const auto [end, status] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (status == std::errc::result_out_of_range) fail(name, "its shape does not fit into 64 bits");
    if (status != std::errc{}) malformed("whole numbers in its shape");
    if (value < 0) fail(name, "its shape has the negative size " + std::to_string(value));
    if (dimensions == 64) fail(name, "its shape has too many dimensions");
    at = static_cast<std::size_t>(end - text.data());
    accept("L");
    return value;
  }
};

inline std::size_t npy_item_size(std::string_view descr, std::string_view name) {
  std::size_t size = 0;
  if (descr.size() >= 3 && descr.size() <= 8 && std::string_view("<>|=").find(descr[0]) < 4) {
    const auto [end, status] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
    if (status != std::errc{} || end != descr.data() + descr.size()) size = 0;
  }
  if (size == 0) fail(name, "holds values of the type " + quoted(descr) + ", which cannot be read");
  return descr[1] == 'U' ? 4 * size : size;
}

}  // namespace detail

/// Types in which .npy files can be read and written.
template <class T>
concept npy_value = !detail::npy_descr<T>.empty();

/// The header at the start of `bytes`, a .npy file or its beginning; `name` denotes the file in messages.
/// Throws input_error for a wrong magic number, a truncated or malformed header, and an invalid shape.
inline npy_header parse_npy_header(std::span<const std::byte> bytes, std::string_view name) {
  using detail::fail;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto need = [&](std::size_t size, const char* or_more) {
    if (text.size() < size)
      fail(name, "truncated header, expected " + std::to_string(size) + " bytes" + or_more + ", found " +
                     std::to_string(text.size()));
  };
  const auto byte = [&](std::size_t k) { return std::to_integer<std::size_t>(bytes[k]); };
  need(10, " or more");
  if (!text.starts_with("\x93NUMPY")) fail(name, "is not a .npy file (wrong magic number)");
  if (byte(6) < 1 || byte(6) > 3)
    fail(name, "has the unknown .npy format version " + std::to_string(byte(6)));
  const std::size_t begin = byte(6) == 1 ? 10 : 12;
  need(begin, " or more");
  const std::size_t length = byte(8) | byte(9) << 8 | (begin == 10 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > detail::longest_npy_header)
    fail(name, "its header claims " + std::to_string(length) + " bytes, more than the limit of 1 MiB");
  need(begin + length, "");

  npy_header header;
  header.data_offset = begin + length;
  detail::npy_dictionary{text.substr(begin, length), name}.read(header);
  header.item_size = detail::npy_item_size(header.descr, name);
  global_index product = static_cast<global_index>(header.item_size);
  for (global_index extent : header.shape) {
    const global_index factor = std::max<global_index>(extent, 1);
    if (product > std::numeric_limits<global_index>::max() / factor)
      fail(name, "its shape " + detail::shape_text(header.shape) + " is too large");
    product *= factor;
  }
  return header;
}

namespace detail {

inline void check_npy_size(const npy_header& header, std::uintmax_t found, std::string_view name) {
  const auto expected = static_cast<std::uintmax_t>(header.count()) * header.item_size;
  if (found != expected)
    fail(name, "expected " + std::to_string(expected) + " bytes of data for its shape " +
                   shape_text(header.shape) + ", found " + std::to_string(found));
  if (header.fortran_order && header.shape.size() > 2)
    fail(name, "is in Fortran order with " + std::to_string(header.shape.size()) +
                   " dimensions, which is read for two at most");
}

}  // namespace detail

}  // namespace partita::io
