// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The header of a blocked file, which describes its matrix.
///
/// The file, little-endian: a header, in bytes
///     0  "\x93PARTITA"        8  version, 1 (u32)     12  bytes of a value: 0, 4 or 8 (u32)
///    16  bytes of a column: 4 or 8 (u32)              20  0 (u32)
///    24  rows, columns, entries and blocks (4 i64)
///    56  for each block: first row, row after the last, entries, position (4 i64), CRC-32C (u32), 0 (u32)
/// and then the CRC-32C of all that (u32). Each block begins at a multiple of 4096 and has the offsets of
/// its rows, from 0 on (i64), then the columns, then the values, which begin at a multiple of 8.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/checksum.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"

namespace partita::io {

/// One block of a blocked file.
struct matrix_block {
  interval rows;
  global_index entries = 0;
  global_index position = 0;  ///< of its first byte
  std::uint32_t checksum = 0;
};

/// The header of a blocked file.
struct blocked_header {
  matrix_shape shape;
  global_index entries = 0;
  int value_bytes = 0;   ///< 4: float, 8: double, 0: none, all values are 1
  int column_bytes = 0;  ///< 4 or 8
  std::vector<matrix_block> blocks;
};

namespace detail {

inline constexpr std::string_view blocked_magic = "\x93PARTITA";
inline constexpr std::size_t block_alignment = 4096, first_table_byte = 56, table_line_bytes = 40;

inline std::size_t rounded_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Where the parts of a block begin, and the size of the block.
struct block_layout {
  std::size_t columns, values, size;

  block_layout(const blocked_header& header, const matrix_block& block)
      : columns(8 * (static_cast<std::size_t>(block.rows.size()) + 1)),
        values(rounded_up(columns + static_cast<std::size_t>(block.entries * header.column_bytes), 8)),
        size(values + static_cast<std::size_t>(block.entries * header.value_bytes)) {}
};

inline std::string text_of(std::size_t index, const matrix_block& block) {
  return "block " + std::to_string(index) + " with the rows from " + std::to_string(block.rows.begin) +
         " to before " + std::to_string(block.rows.end);
}

template <class T>
void append_value(std::vector<std::byte>& bytes, std::type_identity_t<T> value) {
  const auto begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

template <class T>
T value_at(const std::vector<std::byte>& bytes, std::size_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof(T));
  return value;
}

/// The bytes of the header, with checksum.
inline std::vector<std::byte> header_bytes(const blocked_header& header) {
  std::vector<std::byte> bytes;
  for (const char c : blocked_magic) bytes.push_back(static_cast<std::byte>(c));
  for (const int number : {1, header.value_bytes, header.column_bytes, 0})
    append_value<std::uint32_t>(bytes, static_cast<std::uint32_t>(number));
  for (const global_index number : {header.shape.rows, header.shape.cols, header.entries,
                                    static_cast<global_index>(header.blocks.size())})
    append_value<std::int64_t>(bytes, number);
  for (const matrix_block& block : header.blocks) {
    for (const global_index number : {block.rows.begin, block.rows.end, block.entries, block.position})
      append_value<std::int64_t>(bytes, number);
    append_value<std::uint32_t>(bytes, block.checksum);
    append_value<std::uint32_t>(bytes, 0);
  }
  append_value<std::uint32_t>(bytes, crc32c(bytes));
  return bytes;
}

/// Throws input_error unless blocks are consecutive, hold what the header says and lie after it.
inline void check_blocks(const blocked_header& header, std::size_t header_size, std::size_t file_size,
                         const std::string& name) {
  global_index row = 0, entries = 0, end = static_cast<global_index>(header_size);
  const auto most = static_cast<global_index>(file_size);
  for (std::size_t k = 0; k < header.blocks.size(); ++k) {
    const matrix_block& block = header.blocks[k];
    if (block.rows.begin != row || block.rows.end < row || block.rows.end > header.shape.rows ||
        block.entries < 0 || block.position < end)
      fail(name, "its header is inconsistent at " + text_of(k, block));
    if (block.position > most || block.rows.size() > most / 8 || block.entries > most / header.column_bytes ||
        block_layout(header, block).size > file_size - static_cast<std::size_t>(block.position))
      fail(name, "is cut off: " + text_of(k, block) + " does not end within its " + std::to_string(most) +
                     " bytes");
    row = block.rows.end;
    end = block.position + static_cast<global_index>(block_layout(header, block).size);
    entries += block.entries;
  }
  if (row != header.shape.rows || entries != header.entries)
    fail(name, "its blocks are not the whole matrix");
}

}  // namespace detail

/// The header of a blocked file. Throws input_error if it is damaged or not such a file and, naming the
/// block, if it is cut off.
inline blocked_header read_blocked_header(const text_source& file) {
  const std::string& name = file.name();
  std::vector<std::byte> bytes;
  const auto read_to = [&](std::size_t size) {
    if (file.size() < size)
      detail::fail(
          name, "is cut off: its header does not end within its " + std::to_string(file.size()) + " bytes");
    const std::size_t before = bytes.size();
    bytes.resize(size);
    file.read(before, reinterpret_cast<char*>(bytes.data()) + before, size - before);
  };
  std::array<char, 8> magic{};
  file.read(0, magic.data(), std::min(magic.size(), file.size()));
  if (std::string_view(magic.data(), magic.size()) != detail::blocked_magic)
    detail::fail(name, "is not a blocked matrix (wrong magic number)");
  read_to(detail::first_table_byte);
  const auto word = [&](std::size_t at) { return detail::value_at<std::uint32_t>(bytes, at); };
  const auto number = [&](std::size_t at) { return detail::value_at<std::int64_t>(bytes, at); };
  if (word(8) != 1) detail::fail(name, "has the unknown version " + std::to_string(word(8)));
  const auto blocks = static_cast<std::uint64_t>(number(48));
  if (blocks > file.size() / detail::table_line_bytes)
    detail::fail(name, "its header is damaged, or it is cut off: it has no room for " +
                           std::to_string(number(48)) + " blocks");
  read_to(detail::first_table_byte + blocks * detail::table_line_bytes + 4);
  const std::size_t checked = bytes.size() - 4;
  if (crc32c(std::span(bytes).first(checked)) != word(checked))
    detail::fail(name, "its header is damaged (wrong checksum)");

  blocked_header header{
      {number(24), number(32)}, number(40), static_cast<int>(word(12)), static_cast<int>(word(16)), {}};
  const bool known = (word(12) == 0 || word(12) == 4 || word(12) == 8) && (word(16) == 4 || word(16) == 8);
  if (!known || header.shape.rows < 0 || header.shape.cols < 0)
    detail::fail(name, "its header is inconsistent");
  for (std::size_t at = detail::first_table_byte; at < checked; at += detail::table_line_bytes)
    header.blocks.push_back({{number(at), number(at + 8)}, number(at + 16), number(at + 24), word(at + 32)});
  detail::check_blocks(header, bytes.size(), file.size(), name);
  return header;
}

}  // namespace partita::io
