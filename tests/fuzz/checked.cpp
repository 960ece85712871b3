// SPDX-License-Identifier: Apache-2.0
// Readers of files with checksums, which inputs are given as they are and with the right ones.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/readers.hpp"
#include "partita/io/blocked.hpp"
#include "partita/io/checkpoint_folder.hpp"
#include "partita/io/checksum.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/safetensors.hpp"

namespace fuzz {

namespace io = partita::io;
using partita::global_index;

namespace {

constexpr std::size_t table = 56, line = 40;

/// A number of the file.
std::uint64_t number_at(std::span<const char> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

void put_checksum(std::span<char> bytes, std::size_t at, std::span<const char> of) {
  const std::uint32_t sum = io::crc32c(std::as_bytes(of));
  std::memcpy(bytes.data() + at, &sum, sizeof sum);
}

/// The sizes that a block claims are wrapped as unsigned numbers are: the reader must refuse them.
void repair_block(std::span<char> bytes, std::size_t entry) {
  std::uint32_t value_bytes = 0, column_bytes = 0;
  std::memcpy(&value_bytes, bytes.data() + 12, 4);
  std::memcpy(&column_bytes, bytes.data() + 16, 4);
  const std::uint64_t rows = number_at(bytes, entry + 8) - number_at(bytes, entry),
                      entries = number_at(bytes, entry + 16), position = number_at(bytes, entry + 24);
  const std::uint64_t columns = 8 * (rows + 1), values = (columns + entries * column_bytes + 7) / 8 * 8,
                      size = values + entries * value_bytes;
  if (position > bytes.size() || size > bytes.size() - position) return;
  put_checksum(bytes, entry + 32, bytes.subspan(position, size));
}

void repair(std::span<char> bytes) {
  if (bytes.size() < table + 4) return;
  const std::uint64_t blocks = number_at(bytes, 48);
  if (blocks > (bytes.size() - table - 4) / line) return;
  for (std::size_t k = 0; k < blocks; ++k) repair_block(bytes, table + k * line);
  const std::size_t end = table + blocks * line;
  put_checksum(bytes, end, bytes.first(end));
}

void read_blocks(std::span<const char> bytes) {
  taken([&] {
    const io::blocked_file file(bytes, "input");
    for (std::size_t k = 0; k < file.header().blocks.size(); ++k)
      taken([&] {
        const auto rows = file.read_block<float>(k);
        for (const global_index column : rows.columns)
          require(column >= 0 && column < file.header().shape.cols, "an entry is outside the matrix");
      });
    taken([&] {
      const auto all = file.read_rows({0, file.header().shape.rows});
      require(static_cast<global_index>(all.values.size()) == file.header().entries, "entries are missing");
    });
  });
}

void read_tensors(const io::safetensors_file& file) {
  for (const io::named_tensor& tensor : file.tensors()) {
    taken([&] { file.values<float>(tensor.name); });
    taken([&] { file.values<std::int64_t>(tensor.name); });
  }
}

}  // namespace

void blocked(input bytes) {
  const std::string_view text = text_of(bytes);
  read_blocks(text);
  std::vector<char> repaired(text.begin(), text.end());
  repair(repaired);
  read_blocks(repaired);
}

void safetensors(input bytes) {
  taken([&] { read_tensors(io::safetensors_file({bytes.begin(), bytes.end()}, "input")); });
}

/// The input as the newest checkpoint, and then its tensors as the one before.
void checkpoint(input bytes) {
  static const scratch_folder folder;
  static const io::checkpoint_folder checkpoints(folder.path(), 2);
  std::optional<io::safetensors_file> file;
  if (taken([&] { file.emplace(std::vector<std::byte>(bytes.begin(), bytes.end()), "input"); }))
    checkpoints.write(1, file->tensors(), file->metadata());
  else
    checkpoints.write(1, {}, {{"epoch", "1"}});
  folder.write(checkpoints.path_of(2).filename().string(), text_of(bytes));
  int passed_over = 0;
  const auto newest = checkpoints.newest([&](const std::string&) { ++passed_over; });
  require(newest.has_value(), "the whole checkpoint is not found");
  require(newest->name() == checkpoints.path_of(passed_over == 0 ? 2 : 1).string(), "which one is newest");
  read_tensors(*newest);
}

void gzip(input bytes) {
  const std::string_view text = text_of(bytes);
  taken([&] { io::unpack_gzip(text, "input"); });
}

}  // namespace fuzz
