#pragma once
/// The header of a NumPy .npy file, format versions 1, 2 and 3: what the values are and where they begin.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/io/quote.hpp"

namespace partita::io {

/// What the header of a .npy file says. The sizes of a parsed header are checked: no product of them
/// overflows.
struct npy_header {
  std::string descr;                ///< NumPy's name of the type with its byte order, for example "<f4"
  bool fortran_order = false;       ///< whether the first index runs fastest
  std::vector<global_index> shape;  ///< empty for a single value
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

constexpr std::size_t longest_npy_header = std::size_t{1} << 20;
constexpr std::size_t most_npy_dimensions = 64;
constexpr std::size_t npy_prefix_size = 12;

[[noreturn]] inline void fail(std::string_view name, const std::string& what) {
  throw input_error(std::string(name) + ": " + what);
}

/// "float32" for "<f4" and the like; the quoted descr for what has no such name.
inline std::string npy_type_name(std::string_view descr) {
  if (descr.size() == 3 && descr[2] >= '1' && descr[2] <= '8') {
    const std::string bits = std::to_string(8 * (descr[2] - '0'));
    if (descr[1] == 'f') return "float" + bits;
    if (descr[1] == 'i') return "int" + bits;
    if (descr[1] == 'u') return "uint" + bits;
    if (descr[1] == 'b') return "bool";
  }
  return detail::quoted(descr);
}

inline std::string shape_text(const std::vector<global_index>& shape) {
  if (shape.empty()) return "()";
  std::string text = shape.size() == 1 ? "" : std::to_string(shape.front());
  if (shape.size() == 1) return '(' + std::to_string(shape.front()) + ",)";
  for (std::size_t d = 1; d < shape.size(); ++d) text += " x " + std::to_string(shape[d]);
  return text;
}

/// Reads the Python dictionary literal of a header, and nothing more general than NumPy writes.
class npy_dictionary {
 public:
  npy_dictionary(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  void read(npy_header& header) {
    std::optional<std::string> descr;
    std::optional<bool> order;
    std::optional<std::vector<global_index>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = string();
      } else if (key == "fortran_order" && !order) {
        order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        malformed("the keys descr, fortran_order and shape, once each");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) malformed("nothing after the dictionary");
    if (!descr || !order || !shape) malformed("the keys descr, fortran_order and shape, once each");
    header.descr = std::move(*descr);
    header.fortran_order = *order;
    header.shape = std::move(*shape);
  }

 private:
  [[noreturn]] void malformed(const std::string& expected) const {
    fail(name_, "malformed header, expected " + expected);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c))
      malformed(std::string("'") + c + "' at byte " + std::to_string(at_) + " of its dictionary");
  }

  std::string string() {
    const char quote = accept('\'') ? '\'' : accept('"') ? '"' : '\0';
    const std::size_t end = quote ? text_.find(quote, at_) : std::string_view::npos;
    if (end == std::string_view::npos)
      malformed("a quoted string at byte " + std::to_string(at_) + " of its dictionary");
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    malformed("True or False for fortran_order");
  }

  std::vector<global_index> tuple() {
    std::vector<global_index> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(integer());
      accept('L');
      if (values.size() > most_npy_dimensions) fail(name_, "its shape has too many dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  global_index integer() {
    skip_space();
    global_index value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) fail(name_, "its shape does not fit into 64 bits");
    if (status != std::errc{}) malformed("whole numbers in its shape");
    if (value < 0) fail(name_, "its shape has the negative size " + std::to_string(value));
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
};

inline std::size_t npy_item_size(std::string_view descr, std::string_view name) {
  std::size_t size = 0;
  const bool named =
      descr.size() >= 3 && descr.size() <= 8 && std::strchr("<>|=", descr[0]) && descr[0] != '\0';
  if (named) {
    const auto [end, status] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
    if (status != std::errc{} || end != descr.data() + descr.size()) size = 0;
  }
  if (size == 0) fail(name, "holds values of the type " + detail::quoted(descr) + ", which cannot be read");
  return descr[1] == 'U' ? 4 * size : size;
}

/// Bytes before the values, out of the first npy_prefix_size bytes of a file (all bytes of a shorter one).
inline std::size_t npy_data_offset(std::span<const std::byte> prefix, std::string_view name) {
  constexpr char magic[] = "\x93NUMPY";
  if (prefix.size() < 10)
    fail(name, "truncated header, expected 10 bytes or more, found " + std::to_string(prefix.size()));
  if (std::memcmp(prefix.data(), magic, 6) != 0) fail(name, "is not a .npy file, as its first bytes tell");
  const auto byte = [&](std::size_t k) { return std::to_integer<std::size_t>(prefix[k]); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    fail(name, "has the unknown .npy format version " + std::to_string(version));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (prefix.size() < begin)
    fail(name, "truncated header, expected 12 bytes or more, found " + std::to_string(prefix.size()));
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > longest_npy_header)
    fail(name, "its header claims " + std::to_string(length) + " bytes, which is absurd");
  return begin + length;
}

}  // namespace detail

/// The header in `bytes`, the beginning of a .npy file or all of it; `name` is what messages call the file.
/// Throws input_error for a wrong magic number, a truncated or malformed header, and an absurd shape.
inline npy_header parse_npy_header(std::span<const std::byte> bytes, std::string_view name) {
  using detail::fail;
  npy_header header;
  header.data_offset =
      detail::npy_data_offset(bytes.first(std::min(bytes.size(), detail::npy_prefix_size)), name);
  if (bytes.size() < header.data_offset)
    fail(name, "truncated header, expected " + std::to_string(header.data_offset) + " bytes, found " +
                   std::to_string(bytes.size()));
  const std::size_t begin = std::to_integer<int>(bytes[6]) == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin,
                              header.data_offset - begin);
  detail::npy_dictionary(text, name).read(header);
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

}  // namespace partita::io
