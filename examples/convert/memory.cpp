// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>
#include <zip.h>

#include "../train/arrangement.hpp"
#include "graph.hpp"
#include "partita/base/error.hpp"
#include "partita/io/blocked_header.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_lines.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/text_ranges.hpp"

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

/// What gzip says that a file unpacks to; it keeps 32 bits of it, so more where the file is larger.
double unpacked_size(const fs::path& path) {
  const io::text_source file(path);
  std::uint32_t size = 0;
  if (file.size() < sizeof size) return 0;
  file.read(file.size() - sizeof size, reinterpret_cast<char*>(&size), sizeof size);
  double bytes = size;
  while (bytes < static_cast<double>(file.size()) / 1.01 - 1024) bytes += 0x1p32;
  return bytes;
}

/// From the header of one of an archive's arrays.
double entries_of_npz(const std::string& path) {
  int code = 0;
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code),
                                                         zip_discard);
  for (const char* const name : {"indices.npy", "row.npy"}) {
    zip_file_t* const file = archive ? zip_fopen(archive.get(), name, 0) : nullptr;
    if (file == nullptr) continue;
    std::vector<std::byte> bytes(std::size_t{1} << 12);
    const zip_int64_t got = zip_fread(file, bytes.data(), bytes.size());
    zip_fclose(file);
    bytes.resize(static_cast<std::size_t>(std::max<zip_int64_t>(got, 0)));
    return static_cast<double>(io::parse_npy_header(bytes, path + ", entry " + name).count());
  }
  return 0;
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

format format_of(const std::string& path, bool is_input) {
  std::error_code status;
  if (is_input && fs::is_directory(path, status))
    return fs::exists(fs::path(path) / "raw", status) ? format::ogb : format::folder;
  const auto ends = [&](const char* ending) { return path.ends_with(ending); };
  if (ends(".mtx")) return format::matrix_market;
  if (ends(".txt")) return format::edges;
  if (ends(".txt.gz")) return format::packed_edges;
  if (ends(".graph")) return format::metis;
  if (ends(".npz")) return format::npz;
  if (ends(".npy")) return format::npy;
  if (ends(".part")) return format::blocked;
  if (fs::path(path).extension().empty() && (!is_input || fs::exists(path, status))) return format::folder;
  if (is_input && fs::path(path).extension().empty()) throw partita::input_error(path + ": no such file");
  throw usage_error(path +
                    " does not end in .mtx, .txt, .txt.gz, .graph, .npz, .npy or .part, and is no folder");
}

need memory_needed(const std::string& in, format from, format to, bool undirected, int threads) {
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
    case format::packed_edges:
      text = unpacked_size(in);
      entries = text / 4;  // a line has two ids
      text *= 2;           // while it grows
      break;
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
      entries = entries_of_npz(in);
      break;
    case format::npy:
      entries = static_cast<double>(io::read_npy_header(in).count()) / 2;
      break;
    case format::folder:
      entries = static_cast<double>(io::read_npy_header(fs::path(in) / "edges.npy").count()) / 2;
      break;
    case format::ogb:
      entries = unpacked_size(fs::path(in) / "raw/edge.csv.gz") / 4;
      for (const fs::directory_entry& file : fs::directory_iterator(fs::path(in) / "raw"))
        if (file.path().extension() == ".gz") text = std::max(text, unpacked_size(file.path()));
      text *= 8;  // a number of 4 bytes for two of text, in several copies
      break;
    case format::blocked: {
      const auto header = io::read_blocked_header(io::text_source(fs::path(in)));
      entries = static_cast<double>(header.entries);
      vertices = static_cast<double>(header.shape.rows);
      break;
    }
  }
  if (undirected) entries *= 2;
  if (vertices == 0) vertices = entries;
  return {static_cast<global_index>(entries),
          text + entries * std::max(reading(from), writing(to)) + 24 * std::min(vertices, 1e15) + 0x1p25};
}
