// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>
#include <zip.h>

#include "../ranks/arrangement.hpp"
#include "graph.hpp"
#include "partita/base/error.hpp"
#include "partita/io/blocked_header.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_lines.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/ogb_types.hpp"
#include "partita/io/text_ranges.hpp"
#include "partita/io/unpacked_size.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = partita::io;
using partita::global_index;

/// The lines of a text, which is read once.
global_index lines_of(const io::text_source& text, int threads) {
  global_index lines = 0;
  for (const auto& [range, count, stopped] :
       io::parse_ranges<global_index>(text, 0, threads, [](global_index&count, const io::text_block&block) {
         count += std::count(block.lines.begin(), block.lines.end(), '\n');
         return true;
       }))
    lines += count;
  return lines;
}

/// What a packed text has: as a file says only the size of its last member, it is unpacked to be counted.
struct text_size {
  double bytes = 0, lines = 0;
};
text_size unpacked_size(const fs::path& path, std::optional<std::size_t> unpack_limit) {
  text_size size;
  bool ended = true;
  const auto take = [&](std::string_view piece) {
    if (piece.empty()) return;
    size.bytes += static_cast<double>(piece.size());
    size.lines += static_cast<double>(std::ranges::count(piece, '\n'));
    ended = piece.back() == '\n';
  };
  io::for_gzip_pieces(path, take, unpack_limit);
  if (!ended) ++size.lines;
  return size;
}

/// The first 4 KiB of an archive's array.
std::optional<std::vector<std::byte>> beginning(zip_t* archive, const char* name) {
  zip_file_t* const file = archive != nullptr ? zip_fopen(archive, name, 0) : nullptr;
  if (file == nullptr) return std::nullopt;
  std::vector<std::byte> bytes(std::size_t{1} << 12);
  const zip_int64_t got = zip_fread(file, bytes.data(), bytes.size());
  zip_fclose(file);
  bytes.resize(static_cast<std::size_t>(std::max<zip_int64_t>(got, 0)));
  return bytes;
}

/// Entries and rows, from the arrays of an archive; 0 where it has none, which its reader will say.
std::pair<double, double> size_of_npz(const std::string& path) {
  int code = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code),
                                                         zip_discard);
  double entries = 0, rows = 0;
  for (const std::string name : {"indices.npy", "row.npy"})
    if (const auto bytes = beginning(archive.get(), name.c_str()))
      entries = static_cast<double>(io::parse_npy_header(*bytes, path + ", entry " + name).count());
  if (const auto bytes = beginning(archive.get(), "shape.npy")) {
    const std::string name = path + ", entry shape.npy";
    const bool is_short = io::parse_npy_header(*bytes, name).descr == "<i4";
    const auto first = [](const auto& shape) {
      return shape.values.empty() ? 0 : static_cast<double>(shape.values.front());
    };
    rows = is_short ? first(io::parse_npy<std::int32_t>(*bytes, name))
                    : first(io::parse_npy<std::int64_t>(*bytes, name));
  }
  return {entries, rows};
}

/// Bytes that reading and writing take at once, for each entry.
double reading(format from) {
  switch (from) {
    case format::matrix_market:
      return 64;
    case format::npz:
      return 64;
    case format::metis:
      return 72;
    default:
      return 64;
  }
}
double writing(format to) {
  switch (to) {
    case format::npz:
      return 56;
    case format::metis:
      return 80;
    case format::matrix_market:
      return 56;
    case format::blocked:
      return 56;
    default:
      return 32;
  }
}

}  // namespace

std::string in_words(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, bytes < 0x1p30 ? "%.0f MiB" : "%.1f GiB",
                bytes / (bytes < 0x1p30 ? 0x1p20 : 0x1p30));
  return text;
}

void require_memory_for_rows(partita::matrix_shape shape) {
  const std::size_t there = io::available_memory();
  if (static_cast<std::size_t>(shape.rows) > there / 16)
    throw partita::error("the rows of a matrix of " + to_string(shape) + " take more than the " +
                         in_words(static_cast<double>(there)) + " of memory that are free");
}

format format_of(const std::string& path, bool is_input) {
  std::error_code status;
  if (is_input && fs::is_directory(path, status)) {
    if (fs::is_directory(fs::path(path) / "vertices", status))
      throw partita::input_error(path + ": has several types of vertices; train reads it as it is");
    return !fs::exists(fs::path(path) / "raw", status) ? format::folder
           : io::ogb_types::are_in(path)               ? format::ogb_types
                                                       : format::ogb;
  }
  const auto ends = [&](const char* ending) { return path.ends_with(ending); };
  if (ends(".mtx")) return format::matrix_market;
  if (ends(".txt") || (is_input && ends(".csv"))) return format::edges;
  if (ends(".txt.gz")) return format::packed_edges;
  if (ends(".graph")) return format::metis;
  if (ends(".npz")) return format::npz;
  if (ends(".npy")) return format::npy;
  if (ends(".part")) return format::blocked;
  const bool exists = fs::exists(path, status);
  if (fs::path(path).extension().empty() && (is_input ? exists : !exists || fs::is_directory(path, status)))
    return format::folder;
  if (is_input && fs::path(path).extension().empty()) throw partita::input_error(path + ": no such file");
  throw usage_error(path + " does not end in .mtx, .txt, .txt.gz, .graph, .npz, .npy or .part" +
                    (is_input ? ", or .csv for edges" : "") + ", and is not a folder");
}

global_index vertices_of_npy(const std::string& path) {
  const io::npy_header header = io::read_npy_header(path);
  if (header.shape.size() != 2 || header.shape[1] != 2)
    throw partita::input_error(path + ": expected two vertices in each row");
  constexpr global_index at_once = global_index{1} << 16, most = global_index{1} << 40;
  global_index vertices = 0;
  for (global_index begin = 0; begin < header.shape[0]; begin += at_once) {
    const auto piece =
        io::read_npy_rows<std::int64_t>(path, {begin, std::min(begin + at_once, header.shape[0])});
    for (std::size_t k = 0; k < piece.values.size(); ++k) {
      const global_index vertex = piece.values[k];
      const auto row = [&] {
        return path + ": row " + std::to_string(begin + static_cast<global_index>(k / 2));
      };
      if (vertex < 0) throw partita::input_error(row() + " has a negative vertex");
      if (vertex >= most)
        throw partita::input_error(row() + " has the vertex " + std::to_string(vertex) +
                                   ", and a graph that is converted has no more than 2^40");
      vertices = std::max(vertices, vertex + 1);
    }
  }
  return vertices;
}

std::vector<std::pair<std::string, global_index>> counted_vertices(const std::string& path) {
  std::vector<std::pair<std::string, global_index>> counts;
  for (const std::string name : {"features.npy", "labels.npy", "ids.npy"}) {
    const fs::path file = fs::path(path) / name;
    if (!fs::exists(file)) continue;
    const io::npy_header header = io::read_npy_header(file);
    if (header.shape.empty()) throw partita::input_error(file.string() + ": is a single number");
    counts.emplace_back(name, header.shape.front());
  }
  if (const fs::path count = fs::path(path) / "count.npy"; fs::exists(count))
    counts.emplace_back("count.npy", io::detail::vertices_of(count, {}));
  const fs::path sparse = fs::path(path) / "features_csr.npz";
  if (fs::exists(sparse))
    counts.emplace_back("features_csr.npz", static_cast<global_index>(size_of_npz(sparse.string()).second));
  return counts;
}

double table_bytes(const vertex_tables& tables) {
  double bytes = 0;
  for (const std::string& path : {tables.features, tables.labels, tables.split}) {
    std::error_code status;
    const std::uintmax_t size = path.empty() ? 0 : fs::file_size(path, status);
    if (!status) bytes += 16 * static_cast<double>(size);  // a number may have two bytes, a row may, too
  }
  return bytes;
}

need memory_needed(const std::string& in, format from, format to, changes wanted, int threads,
                   std::optional<std::size_t> unpack_limit) {
  double entries = 0, text = 0, vertices = 0;
  switch (from) {
    case format::matrix_market: {
      const auto header = io::read_market_header(io::text_source(fs::path(in)));
      const bool mirrored = header.symmetry != io::market_symmetry::general;
      entries = static_cast<double>(header.count) * (mirrored ? 2 : 1);
      vertices = static_cast<double>(header.shape.rows);
      break;
    }
    case format::edges:
      entries = static_cast<double>(lines_of(io::text_source(fs::path(in)), threads));
      break;
    case format::packed_edges: {
      const text_size size = unpacked_size(in, unpack_limit);
      text = 3 * size.bytes;  // while it grows
      entries = size.lines;
      break;
    }
    case format::metis: {
      const io::text_source file{fs::path(in)};
      try {
        const auto header = io::read_metis_header(file);
        entries = 2 * static_cast<double>(header.edges);
        vertices = static_cast<double>(header.vertices);
      } catch (const io::malformed_line& malformed) {
        io::fail_at(file, malformed);
      }
      break;
    }
    case format::npz:
      std::tie(entries, vertices) = size_of_npz(in);
      break;
    case format::npy:
    case format::folder: {
      const std::string edges = from == format::npy ? in : (fs::path(in) / "edges.npy").string();
      entries = static_cast<double>(io::read_npy_header(edges).count()) / 2;
      vertices = static_cast<double>(vertices_of_npy(edges));
      if (from == format::npy) break;
      for (const auto& [name, n] : counted_vertices(in))
        vertices = std::max(vertices, static_cast<double>(n));
      break;
    }
    case format::ogb:
    case format::ogb_types:
      for (const fs::directory_entry& file : fs::recursive_directory_iterator(fs::path(in) / "raw")) {
        if (file.path().extension() != ".gz") continue;
        const text_size size = unpacked_size(file.path(), unpack_limit);
        text = std::max(text, size.bytes);
        if (file.path().filename() == "edge.csv.gz") entries += size.lines;
      }
      text *= 8;  // a number of 4 bytes for two of text, in several copies
      break;
    case format::blocked: {
      const auto header = io::read_blocked_header(io::text_source(fs::path(in)));
      entries = static_cast<double>(header.entries);
      vertices = static_cast<double>(header.shape.rows);
      break;
    }
  }
  if (wanted.undirected) entries *= 2;
  if (vertices == 0) vertices = entries;
  const double vertex = from == format::metis || to == format::metis ? 32 : 24;  // bytes of each
  vertices = std::min(vertices, 1e15);
  return {static_cast<global_index>(entries),
          text + entries * std::max(reading(from), writing(to)) + vertex * vertices + 0x1p25};
}
