// SPDX-License-Identifier: Apache-2.0
// Readers of .npy and .npz.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"
#include "partita/io/mapped_npy.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/parts.hpp"

namespace fuzz {

namespace io = partita::io;
using partita::global_index;

namespace {

template <class T>
void parse(input bytes) {
  taken([&] {
    const io::npy_array<T> all = io::parse_npy<T>(bytes, "input");
    require(static_cast<global_index>(all.values.size()) == all.rows() * all.cols(), "values are missing");
  });
}

/// The same file read whole, mapped, and in two halves.
template <class T>
void read_file(const std::filesystem::path& path) {
  const auto same = [](auto a, auto b) {
    return text_of(std::as_bytes(std::span(a))) == text_of(std::as_bytes(std::span(b)));
  };
  std::optional<io::npy_array<T>> whole;
  taken([&] { whole = io::read_npy<T>(path); });
  std::optional<io::mapped_array<T>> mapped;
  taken([&] { mapped = io::map_npy<T>(path); });
  require(whole.has_value() == mapped.has_value(), "only one of read_npy and map_npy takes it");
  if (!whole) return;
  require(whole->shape == mapped->shape, "mapped, it has another shape");
  require(same(std::span(whole->values), std::span(mapped->values.data(), mapped->values.size())),
          "mapped, it has other values");
  if (whole->shape.empty() || whole->cols() == 0) return;
  const global_index rows = whole->rows(), half = rows / 2;
  std::vector<T> joined = io::read_npy_rows<T>(path, {0, half}).values;
  const std::vector<T> rest = io::read_npy_rows<T>(path, {half, rows}).values;
  joined.insert(joined.end(), rest.begin(), rest.end());
  require(same(std::span(whole->values), std::span(joined)), "in rows, it has other values");
}

}  // namespace

void npy(input bytes) {
  io::npy_header header;
  if (!taken([&] { header = io::parse_npy_header(bytes, "input"); })) return;
  const auto parse_as = [&]<class T>(const char* descr, T) {
    if (header.descr == descr || (sizeof(T) == 1 && header.descr == "|b1")) parse<T>(bytes);
  };
  parse_as("<f4", float{});
  parse_as("<f8", double{});
  parse_as("<i8", std::int64_t{});
  parse_as("<i4", std::int32_t{});
  parse_as("<i2", std::int16_t{});
  parse_as("|i1", std::int8_t{});
  parse_as("<u8", std::uint64_t{});
  parse_as("<u4", std::uint32_t{});
  parse_as("<u2", std::uint16_t{});
  parse_as("|u1", std::uint8_t{});
}

void npy_file(input bytes) {
  static const scratch_folder folder;
  const std::filesystem::path path = folder.write("input.npy", text_of(bytes));
  read_file<double>(path);
  read_file<std::uint8_t>(path);
}

void npz(input bytes) {
  taken([&] {
    const io::entry_array<double> matrix = io::parse_sparse_npz<double>(bytes, "input");
    for (const auto& entry : matrix.entries)
      require(
          entry.row >= 0 && entry.row < matrix.shape.rows && entry.col >= 0 && entry.col < matrix.shape.cols,
          "an entry is outside the matrix");
  });
}

void parts(input bytes) {
  static const scratch_folder folder;
  const std::string_view text = text_of(bytes);
  const bool binary = text.starts_with("\x93NUMPY");
  const std::filesystem::path path = folder.write(binary ? "input.npy" : "input.txt", text);
  taken([&] {
    const global_index vertices =
        binary ? io::read_npy_header(path).count()
               : std::ranges::count(text, '\n') + (text.empty() || text.ends_with('\n') ? 0 : 1);
    for (const int part : io::read_parts(path, vertices, 8)) require(part >= 0 && part < 8, "no such part");
  });
}

}  // namespace fuzz
