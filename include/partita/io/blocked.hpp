// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse matrices stored in blocks of rows, each with a checksum; a rank reads only the blocks it needs.
/// The format is described in io/blocked_header.hpp.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/io/blocked_header.hpp"
#include "partita/io/checksum.hpp"
#include "partita/io/features.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"
#include "partita/io/whole_file.hpp"

namespace partita::io {

/// A matrix in a blocked file, open while this object lives. Any number of threads may read at once.
class blocked_file {
 public:
  /// Opens the file `path` and reads only its header. Local. Throws input_error if it is missing, damaged or
  /// not such a file and, naming the block, if it is cut off.
  explicit blocked_file(const std::filesystem::path& path)
      : file_(path), header_(read_blocked_header(file_)) {}
  /// The content of such a file, which must outlive this object. `name` denotes it in messages.
  blocked_file(std::span<const char> bytes, const std::string& name)
      : file_(std::string_view(bytes.data(), bytes.size()), name), header_(read_blocked_header(file_)) {}

  const blocked_header& header() const { return header_; }

  /// The rows of block k, with global columns. Shape: (rows of the block, columns of the matrix). Values are
  /// converted to T; all are 1 if the file has none. Reads no other block. Local. Throws input_error naming
  /// file, block and rows if it is damaged.
  template <std::floating_point T = double>
  csr_array<T> read_block(std::size_t k) const {
    const matrix_block& block = header_.blocks.at(k);
    const detail::block_layout layout(header_, block);
    std::vector<std::byte> bytes(layout.size);
    file_.read(static_cast<std::size_t>(block.position), reinterpret_cast<char*>(bytes.data()), bytes.size());
    const auto damaged = [&](const char* how) {
      detail::fail(file_.name(), detail::text_of(k, block) + " is damaged (" + how + ")");
    };
    if (crc32c(bytes) != block.checksum) damaged("wrong checksum");

    const auto entries = static_cast<std::size_t>(block.entries);
    csr_array<T> rows{block.rows.size(), header_.shape.cols,
                      std::vector<global_index>(static_cast<std::size_t>(block.rows.size()) + 1),
                      std::vector<global_index>(entries), std::vector<T>(entries, T{1})};
    copy<std::int64_t>(bytes, 0, rows.offsets);
    header_.column_bytes == 4 ? copy<std::int32_t>(bytes, layout.columns, rows.columns)
                              : copy<std::int64_t>(bytes, layout.columns, rows.columns);
    if (header_.value_bytes == 4) copy<float>(bytes, layout.values, rows.values);
    if (header_.value_bytes == 8) copy<double>(bytes, layout.values, rows.values);
    if (rows.offsets.front() != 0 || rows.offsets.back() != block.entries ||
        !std::ranges::is_sorted(rows.offsets))
      damaged("its rows do not begin where others end");
    const interval cols{0, header_.shape.cols};
    if (!std::ranges::all_of(rows.columns, [&](global_index c) { return cols.contains(c); }))
      damaged("an entry is outside the matrix");
    return rows;
  }

  /// The given rows; only blocks with some of them are read. Shape: (rows.size(), columns of the
  /// matrix). Local. Throws input_error as read_block does, and if the matrix does not have these
  /// rows.
  template <std::floating_point T = double>
  csr_array<T> read_rows(interval rows) const {
    if (rows.begin < 0 || rows.size() < 0 || rows.end > header_.shape.rows)
      detail::fail(file_.name(), "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end) +
                                     " were requested, but it has " + std::to_string(header_.shape.rows) +
                                     " rows");
    csr_array<T> all{rows.size(), header_.shape.cols, {0}, {}, {}};
    for (std::size_t k = 0; k < header_.blocks.size(); ++k) {
      const interval block = header_.blocks[k].rows, wanted = intersection(block, rows);
      if (wanted.empty()) continue;
      csr_array<T> part = read_block<T>(k);
      if (wanted == rows && wanted == block) return part;
      const auto first = part.offsets.begin() + (wanted.begin - block.begin);
      const global_index begin = *first, shift = all.offsets.back() - begin, end = *(first + wanted.size());
      for (auto offset = first + 1; offset != first + wanted.size() + 1; ++offset)
        all.offsets.push_back(*offset + shift);
      all.columns.insert(all.columns.end(), part.columns.begin() + begin, part.columns.begin() + end);
      all.values.insert(all.values.end(), part.values.begin() + begin, part.values.begin() + end);
    }
    return all;
  }

 private:
  template <class From, class To>
  static void copy(const std::vector<std::byte>& bytes, std::size_t position, std::vector<To>& to) {
    for (std::size_t e = 0; e < to.size(); ++e)
      to[e] = static_cast<To>(detail::value_at<From>(bytes, position + e * sizeof(From)));
  }

  text_source file_;
  blocked_header header_;
};

namespace detail {

/// The bytes of a block of the matrix.
template <class T>
std::vector<std::byte> block_bytes(const csr_array<T>& matrix, const blocked_header& header,
                                   const matrix_block& block) {
  const block_layout layout(header, block);
  std::vector<std::byte> bytes(layout.size);
  std::size_t at = 0;
  const auto put = [&](auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  };
  const auto row = matrix.offsets.begin() + block.rows.begin;
  for (auto offset = row; offset <= row + block.rows.size(); ++offset) put(*offset - *row);
  const auto first = static_cast<std::size_t>(*row), count = static_cast<std::size_t>(block.entries);
  for (const global_index column : std::span(matrix.columns).subspan(first, count))
    header.column_bytes == 4 ? put(static_cast<std::int32_t>(column)) : put(column);
  if (header.value_bytes > 0 && count > 0)
    std::memcpy(bytes.data() + layout.values, matrix.values.data() + first, count * sizeof(T));
  return bytes;
}

}  // namespace detail

/// Writes the file `path`, which blocked_file reads. Block k has the `sizes[k]` rows that follow those of
/// the blocks before, as in blocking::given; for ranks to read no more than they need, give the sizes of the
/// finest parts. A matrix without values has 1 everywhere. Columns take 4 bytes each if they fit. At most
/// one block is copied at a time. Local: one rank calls it. Throws shape_error unless the matrix is
/// consistent and the sizes add up to its rows, and input_error if the file cannot be written; it then stays
/// as it was.
template <class T>
requires std::same_as<T, float> || std::same_as<T, double>
void write_blocked(const std::filesystem::path& path, const csr_array<T>& matrix,
                   std::span<const global_index> sizes) {
  const auto entries = static_cast<global_index>(matrix.columns.size());
  const auto outside = [&](global_index column) { return column < 0 || column >= matrix.cols; };
  if (static_cast<global_index>(matrix.offsets.size()) != matrix.rows + 1 || matrix.offsets.front() != 0 ||
      matrix.offsets.back() != entries || !std::ranges::is_sorted(matrix.offsets) ||
      (!matrix.values.empty() && matrix.values.size() != matrix.columns.size()) ||
      std::ranges::any_of(matrix.columns, outside))
    base::throw_error<shape_error>({path.string(), ": the matrix is inconsistent"});
  blocked_header header{{matrix.rows, matrix.cols},
                        entries,
                        matrix.values.empty() && entries > 0 ? 0 : static_cast<int>(sizeof(T)),
                        matrix.cols <= std::numeric_limits<std::int32_t>::max() ? 4 : 8,
                        {}};
  std::size_t position = detail::first_table_byte + sizes.size() * detail::table_line_bytes + 4;
  global_index row = 0;
  for (const global_index size : sizes) {
    if (size < 0 || size > matrix.rows - row) break;
    position = detail::rounded_up(position, detail::block_alignment);
    const auto begin = matrix.offsets.begin() + row;
    header.blocks.push_back(
        {{row, row + size}, *(begin + size) - *begin, static_cast<global_index>(position), 0});
    header.blocks.back().checksum = crc32c(detail::block_bytes(matrix, header, header.blocks.back()));
    position += detail::block_layout(header, header.blocks.back()).size;
    row += size;
  }
  if (header.blocks.size() < sizes.size() || row != matrix.rows)
    base::throw_error<shape_error>(
        {path.string(), ": the blocks do not have ", matrix.rows, " rows together"});
  write_whole_file(path, [&](const auto& write) {
    const std::vector<std::byte> first = detail::header_bytes(header);
    write(std::span<const std::byte>(first));
    std::size_t written = first.size();
    for (const matrix_block& block : header.blocks) {
      const std::vector<std::byte> gap(static_cast<std::size_t>(block.position) - written),
          bytes = detail::block_bytes(matrix, header, block);
      write(std::span<const std::byte>(gap));
      write(std::span<const std::byte>(bytes));
      written += gap.size() + bytes.size();
    }
  });
}

}  // namespace partita::io
