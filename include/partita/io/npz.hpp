// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads and writes sparse matrices as scipy.sparse.save_npz does. Needs libzip.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/base/triplet.hpp"
#include "partita/io/features.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz_archive.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/unpacked_size.hpp"

namespace partita::io {

namespace detail {

template <class To, class From>
std::vector<To> converted(const npy_array<From>& from) {
  std::vector<To> to(from.values.size());
  std::ranges::transform(from.values, to.begin(), [](From value) { return static_cast<To>(value); });
  return to;
}

/// The vector in an entry, converted to To; `expected` names the accepted element types From.
template <class To, npy_value... From>
std::vector<To> vector_of(const npz_archive& archive, const std::string& entry, const char* expected) {
  const std::vector<std::byte> bytes = archive.read(entry);
  const std::string name = archive.entry_name(entry);
  const npy_header header = parse_npy_header(bytes, name);
  if (header.shape.size() != 1) fail(name, "expected a vector, found the shape " + shape_text(header.shape));
  const std::string descr = header.descr == "|b1"                        ? "|u1"
                            : std::integral<To> && header.descr == "<u8" ? "<i8"
                                                                         : header.descr;
  std::vector<To> values;
  if (!((descr == npy_descr<From> && (values = converted<To>(parse_npy<From>(bytes, name)), true)) || ...))
    fail(name, std::string("expected ") + expected + " values, found " + npy_type_name(header.descr));
  return values;
}

inline std::vector<global_index> index_vector(const npz_archive& archive, const std::string& entry) {
  return vector_of<global_index, std::int64_t, std::int32_t>(archive, entry, "int32, int64 or uint64");
}

template <class T>
std::vector<T> value_vector(const npz_archive& archive, const std::string& entry) {
  return vector_of<T, float, double, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint64_t,
                   std::uint32_t, std::uint16_t, std::uint8_t>(archive, entry, "float, integer or bool");
}

/// The text of the entry "format": SciPy writes three ASCII bytes, older versions UTF-32 characters.
inline std::string format_text(const npz_archive& archive) {
  const std::vector<std::byte> bytes = archive.read("format");
  const npy_header header = parse_npy_header(bytes, archive.entry_name("format"));
  std::string text;
  for (std::byte b : std::span(bytes).subspan(header.data_offset))
    if (b != std::byte{0}) text += std::to_integer<char>(b);
  return text;
}

/// The shape of the matrix; neither size is negative.
inline matrix_shape shape_of(const npz_archive& archive) {
  const std::vector<global_index> sizes = index_vector(archive, "shape");
  if (sizes.size() != 2)
    fail(archive.entry_name("shape"), "expected 2 sizes, found " + std::to_string(sizes.size()));
  const matrix_shape shape{sizes[0], sizes[1]};
  if (shape.rows < 0 || shape.cols < 0)
    fail(archive.name(), "its shape " + to_string(shape) + " is negative");
  return shape;
}

/// Whether the numbers of values match. `line`: the name of the compressed dimension.
inline void check_counts(global_index lines, global_index offsets, global_index places, global_index values,
                         const std::string& name, const std::string& line) {
  if (offsets - 1 != lines)
    fail(name, "expected one more entry of indptr than the " + std::to_string(lines) + " " + line +
                   "s, found " + std::to_string(offsets));
  if (values != places)
    fail(name, "indices has " + std::to_string(places) + " entries and data has " + std::to_string(values));
}

/// `line` and `place`: the names of the compressed dimension and of the other one; in CSR, row and column.
template <class T>
void check_csr(const csr_array<T>& matrix, const std::string& name, const std::string& line,
               const std::string& place) {
  const auto entries = static_cast<global_index>(matrix.columns.size());
  check_counts(matrix.rows, static_cast<global_index>(matrix.offsets.size()), entries,
               static_cast<global_index>(matrix.values.size()), name, line);
  if (matrix.offsets.front() != 0 || matrix.offsets.back() != entries)
    fail(name, "indptr runs from " + std::to_string(matrix.offsets.front()) + " to " +
                   std::to_string(matrix.offsets.back()) + " instead of 0 to " + std::to_string(entries));
  const auto drop = std::ranges::is_sorted_until(matrix.offsets);
  if (drop != matrix.offsets.end())
    fail(name, "indptr decreases at " + line + " " + std::to_string(drop - matrix.offsets.begin() - 1));
  const auto outside =
      std::ranges::find_if(matrix.columns, [&](global_index c) { return c < 0 || c >= matrix.cols; });
  if (outside == matrix.columns.end()) return;
  const auto after = std::ranges::upper_bound(matrix.offsets, outside - matrix.columns.begin());
  fail(name, line + " " + std::to_string(after - matrix.offsets.begin() - 1) + " has an entry in " + place +
                 " " + std::to_string(*outside) + " of " + std::to_string(matrix.cols));
}

/// The compressed rows of a matrix in CSR, or the compressed columns of one in CSC as rows of its transpose.
template <class T>
csr_array<T> compressed(const npz_archive& archive, bool by_columns) {
  const matrix_shape shape = shape_of(archive);
  const std::array headers{archive.header("indptr"), archive.header("indices"), archive.header("data")};
  if (std::ranges::all_of(
          headers, [](const npy_header& h) { return h.shape.size() == 1; }))  // before they are unpacked
    check_counts(by_columns ? shape.cols : shape.rows, headers[0].count(), headers[1].count(),
                 headers[2].count(), archive.name(), by_columns ? "column" : "row");
  csr_array<T> matrix{by_columns ? shape.cols : shape.rows, by_columns ? shape.rows : shape.cols,
                      index_vector(archive, "indptr"), index_vector(archive, "indices"),
                      value_vector<T>(archive, "data")};
  check_csr(matrix, archive.name(), by_columns ? "column" : "row", by_columns ? "row" : "column");
  return matrix;
}

/// "csr" if the archive does not give a format.
inline std::string format_of(const npz_archive& archive) {
  return archive.contains("format") ? format_text(archive) : "csr";
}

[[noreturn]] inline void refuse_format(const npz_archive& archive, const char* expected) {
  fail(archive.name(),
       "holds a matrix in the format " + detail::quoted(format_of(archive)) + ", expected " + expected);
}

template <class T>
std::vector<triplet<T>> coordinate_entries(const npz_archive& archive) {
  const matrix_shape shape = shape_of(archive);
  const std::vector<global_index> rows = index_vector(archive, "row"), cols = index_vector(archive, "col");
  const std::vector<T> values = value_vector<T>(archive, "data");
  if (rows.size() != values.size() || cols.size() != values.size())
    fail(archive.name(), "row has " + std::to_string(rows.size()) + " entries, col has " +
                             std::to_string(cols.size()) + " and data has " + std::to_string(values.size()));
  std::vector<triplet<T>> entries;
  entries.reserve(values.size());
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (rows[e] < 0 || rows[e] >= shape.rows || cols[e] < 0 || cols[e] >= shape.cols)
      fail(archive.name(), "entry " + std::to_string(e) + " is at (" + std::to_string(rows[e]) + ", " +
                               std::to_string(cols[e]) + ") of " + to_string(shape));
    entries.push_back({rows[e], cols[e], values[e]});
  }
  return entries;
}

}  // namespace detail

/// The CSR matrix in the file `path`, as written by scipy.sparse.save_npz: entries shape, indptr, indices
/// (int32, int64 or uint64), data (floating point, integer or bool) and, optionally, format. Values are
/// converted to T; double is exact except for integers beyond 2^53. Each entry may have `unpack_limit`
/// bytes, or as many as most_unpacked says. Shape: as in the file. Throws input_error naming file and entry
/// if the file is missing, is not such an archive or is not CSR, or if its arrays are inconsistent.
template <std::floating_point T = double>
csr_array<T> read_csr_npz(const std::filesystem::path& path, std::optional<std::size_t> unpack_limit = {}) {
  const detail::npz_archive archive(path, unpack_limit);
  if (detail::format_of(archive) != "csr") detail::refuse_format(archive, "csr");
  return detail::compressed<T>(archive, false);
}

/// A sparse matrix as a list of entries, in any order; entries at the same place are summed.
template <class T = double>
struct entry_array {
  matrix_shape shape;
  std::vector<triplet<T>> entries;
};

namespace detail {

template <class T>
entry_array<T> sparse_in(const npz_archive& archive) {
  const std::string format = format_of(archive);
  if (format == "coo") return {shape_of(archive), coordinate_entries<T>(archive)};
  if (format != "csr" && format != "csc") refuse_format(archive, "csr, csc or coo");
  const bool by_columns = format == "csc";
  const csr_array<T> matrix = compressed<T>(archive, by_columns);
  entry_array<T> result{shape_of(archive), {}};
  result.entries.reserve(matrix.values.size());
  for (std::size_t i = 0; i + 1 < matrix.offsets.size(); ++i)
    for (auto e = static_cast<std::size_t>(matrix.offsets[i]);
         e < static_cast<std::size_t>(matrix.offsets[i + 1]); ++e) {
      const auto line = static_cast<global_index>(i), place = matrix.columns[e];
      result.entries.push_back({by_columns ? place : line, by_columns ? line : place, matrix.values[e]});
    }
  return result;
}

}  // namespace detail

/// The matrix in the file `path`, as written by scipy.sparse.save_npz in one of the formats csr, csc and coo
/// (entries shape, row, col and data). Shape: as in the file. Throws as read_csr_npz does.
template <std::floating_point T = double>
entry_array<T> read_sparse_npz(const std::filesystem::path& path,
                               std::optional<std::size_t> unpack_limit = {}) {
  return detail::sparse_in<T>(detail::npz_archive(path, unpack_limit));
}

/// The matrix in `bytes`, the content of such a file, which `name` denotes in messages. Throws as
/// read_sparse_npz does.
template <std::floating_point T = double>
entry_array<T> parse_sparse_npz(std::span<const std::byte> bytes, const std::string& name,
                                std::optional<std::size_t> unpack_limit = {}) {
  return detail::sparse_in<T>(detail::npz_archive(bytes, name, unpack_limit));
}

/// Writes the file `path`, which scipy.sparse.load_npz reads: the matrix in CSR, uncompressed, with 64-bit
/// indices. The archive is made in memory. Throws input_error if the matrix is inconsistent, and if the file
/// cannot be written; it then stays as it was.
template <npy_value T>
void write_csr_npz(const std::filesystem::path& path, const csr_array<T>& matrix) {
  const std::string name = path.string();
  detail::check_csr(matrix, name, "row", "column");
  const std::vector<global_index> shape{matrix.rows, matrix.cols};
  detail::npz_writer archive(name);
  archive.add("indices", matrix.columns);
  archive.add("indptr", matrix.offsets);
  archive.add_text("format", "csr");
  archive.add("shape", shape);
  archive.add("data", matrix.values);
  archive.write_to(path);
}

namespace detail {

/// The file in a folder that gives the number of vertices.
inline std::string counted_in(const std::filesystem::path& folder) {
  for (const char* name : {"features_csr.npz", "features.npy", "count.npy"})
    if (std::filesystem::exists(folder / name)) return name;
  fail(folder.string(), "has neither features_csr.npz nor features.npy nor count.npy");
}
/// The number of vertices that it gives.
inline global_index vertices_of(const std::filesystem::path& file, std::optional<std::size_t> unpack_limit) {
  const std::string name = file.string();
  global_index count = 0;
  if (file.filename() == "features_csr.npz") {
    count = shape_of(npz_archive(name, unpack_limit)).rows;
  } else if (file.filename() == "features.npy") {
    const npy_header header = read_npy_header(name);
    count = header.shape.empty() ? 0 : header.shape.front();
  } else {
    const npy_array<std::int64_t> numbers = read_npy<std::int64_t>(name);
    if (numbers.values.size() != 1)
      fail(name, "expected one number, found the shape " + shape_text(numbers.shape));
    count = numbers.values.front();
  }
  constexpr global_index most = global_index{1} << 48;
  if (count <= 0 || count > most)
    fail(name, "says that there are " + std::to_string(count) + " vertices, expected at least 1");
  return count;
}

}  // namespace detail

/// The same matrix as vertex features, one row per vertex: in single precision if that is exact for the
/// file's element type (float32, uint8 and bool), in double otherwise. Throws as read_csr_npz does.
inline feature_table read_csr_features(const std::filesystem::path& path,
                                       std::optional<std::size_t> unpack_limit = {}) {
  std::string descr;
  {
    const detail::npz_archive archive(path, unpack_limit);
    descr = archive.header("data").descr;
    // For each feature a model has at least a weight, a gradient and two moments.
    if (const global_index cols = detail::shape_of(archive).cols;
        static_cast<std::size_t>(cols) > available_memory() / 16)
      detail::fail(archive.name(),
                   "has " + std::to_string(cols) + " features, which no model has memory for");
  }
  if (descr == "<f4" || descr == "|u1" || descr == "|b1")
    return feature_table(read_csr_npz<float>(path, unpack_limit));
  return feature_table(read_csr_npz(path, unpack_limit));
}

}  // namespace partita::io
