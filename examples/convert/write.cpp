// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "graph.hpp"
#include "partita/io/blocked.hpp"
#include "partita/io/graph_text.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_graph.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/whole_file.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = partita::io;
using partita::global_index;
using partita::input_error;

constexpr std::array<const char*, 4> vertex_files{"features.npy", "features_csr.npz", "labels.npy",
                                                  "split.npy"};

bool is_whole(double weight) { return weight == std::floor(weight) && std::abs(weight) < 0x1p53; }

/// A .npy file, whole or not at all.
template <class Values>
void write_array(const fs::path& path, const std::vector<global_index>& shape, const Values& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const std::string header =
      io::npy_header_text<typename Values::value_type>(shape, bytes.size(), path.string());
  const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(header)), bytes};
  io::write_whole_file(path, parts);
}

/// The rows in the order of their entries; no values where all are 1.
io::csr_array<double> compressed(graph g) {
  io::csr_array<double> a{g.shape.rows, g.shape.cols,
                          std::vector<global_index>(static_cast<std::size_t>(g.shape.rows) + 1, 0),
                          std::vector<global_index>(g.edges.size()), std::vector<double>(g.weights.size())};
  for (const io::edge& e : g.edges) ++a.offsets[static_cast<std::size_t>(e.source) + 1];
  std::inclusive_scan(a.offsets.begin(), a.offsets.end(), a.offsets.begin());
  std::vector<global_index> next(a.offsets.begin(), a.offsets.end() - 1);
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(g.edges[e].source)]++);
    a.columns[at] = g.edges[e].target;
    if (!g.weights.empty()) a.values[at] = g.weights[e];
  }
  return a;
}

template <class T>
void write_market(const std::string& path, graph g) {
  std::vector<partita::triplet<T>> entries;
  entries.reserve(g.edges.size());
  for (std::size_t e = 0; e < g.edges.size(); ++e)
    entries.push_back(
        {g.edges[e].source, g.edges[e].target, g.weights.empty() ? T{1} : static_cast<T>(g.weights[e])});
  const partita::matrix_shape shape = g.shape;
  g = {};
  io::write_matrix_market(path, shape, entries);
}

void write_metis(const std::string& path, graph g) {
  for (const double weight : g.weights)
    if (!is_whole(weight) || weight <= 0)
      throw input_error(path + ": cannot have the weight " + std::to_string(weight) +
                        ", only positive whole numbers");
  auto a = compressed(std::move(g));
  io::metis_graph lists;
  lists.offsets = std::move(a.offsets);
  lists.neighbours = std::move(a.columns);
  lists.edge_weights.assign(a.values.begin(), a.values.end());
  io::write_metis_graph(path, lists);
}

void write_npz(const std::string& path, graph g) {
  auto a = compressed(std::move(g));
  if (a.values.empty()) a.values.assign(a.columns.size(), 1);
  io::write_csr_npz(path, a);
}

void write_blocks(const std::string& path, graph g, int parts) {
  std::vector<global_index> sizes;
  for (int part = 0; part < parts; ++part)
    sizes.push_back(partita::base::part_of({0, g.shape.rows}, part, parts).size());
  io::write_blocked(path, compressed(std::move(g)), sizes);
}

void write_list(const std::string& path, graph g, bool packed) {
  io::edge_list list{std::move(g.edges), std::move(g.ids), std::move(g.weights)};
  if (list.ids.empty()) {
    list.ids.resize(static_cast<std::size_t>(g.shape.rows));
    std::iota(list.ids.begin(), list.ids.end(), global_index{0});
  }
  if (!packed) return io::write_edge_list(path, list);
  io::write_whole_file(path, [&](const auto& write) {
    io::gzip_packer packer;
    io::edge_list_text(list, [&](std::string_view piece) { packer.pack(piece, write); });
    packer.finish(write);
  });
}

void write_edges(const fs::path& path, const graph& g) {
  static_assert(sizeof(io::edge) == 2 * sizeof(std::int64_t));
  write_array(path, {static_cast<global_index>(g.edges.size()), 2},
              std::span(reinterpret_cast<const std::int64_t*>(g.edges.data()), 2 * g.edges.size()));
}

void write_vertices(const fs::path& dir, const io::dataset& data) {
  const global_index n = data.vertices;
  if (data.features > 0) {
    std::vector<float> values(static_cast<std::size_t>(n * data.features));  // (n, f)
    for (global_index v = 0; v < n; ++v)
      data.vertex_features.fill_row(v, std::span(values).subspan(static_cast<std::size_t>(v * data.features),
                                                                 static_cast<std::size_t>(data.features)));
    write_array(dir / "features.npy", {n, data.features}, values);
  }
  if (data.multi_label)
    write_array(dir / "labels.npy", {n, data.classes}, data.label_matrix);
  else
    write_array(dir / "labels.npy", {n}, data.labels);
  write_array(dir / "split.npy", {n}, data.split);
}

void write_folder(const fs::path& dir, const graph& g, const fs::path& source) {
  for (const double weight : g.weights)
    if (!(std::isfinite(weight) && weight >= 0))
      throw input_error(dir.string() + ": cannot have the weight " + std::to_string(weight) +
                        ", only finite numbers that are not negative");
  fs::create_directories(dir);
  write_edges(dir / "edges.npy", g);
  if (!g.weights.empty())
    write_array(dir / "edge_weight.npy", {static_cast<global_index>(g.weights.size())}, g.weights);
  if (!g.ids.empty()) write_array(dir / "ids.npy", {static_cast<global_index>(g.ids.size())}, g.ids);
  if (g.data) write_vertices(dir, *g.data);
  if (!fs::is_directory(source) || fs::equivalent(source, dir)) return;
  for (const char* const name : vertex_files)
    if (fs::exists(source / name))
      fs::copy_file(source / name, dir / name, fs::copy_options::overwrite_existing);
}

bool has_vertex_files(const fs::path& source) {
  return fs::is_directory(source) &&
         std::ranges::any_of(vertex_files, [&](const char* name) { return fs::exists(source / name); });
}

/// NAME.ids.npy for NAME.mtx.
fs::path beside(fs::path path) { return path.replace_extension("ids.npy"); }

}  // namespace

void write_graph(const std::string& path, format to, graph g, const std::string& source, int parts,
                 const std::function<void(const std::string&)>& lose) {
  const bool is_matrix = to == format::matrix_market || to == format::npz || to == format::blocked;
  const bool is_list = to == format::edges || to == format::packed_edges;
  if (!is_matrix && g.shape.rows != g.shape.cols)
    throw input_error(path + ": cannot have a matrix of " + to_string(g.shape) + ", only a graph");
  if (to != format::folder && (g.data || has_vertex_files(source))) lose("features, labels and split");
  if (to == format::npy && !g.weights.empty()) lose("weights");
  if (is_list || to == format::npy) {
    std::vector<bool> met(static_cast<std::size_t>(g.shape.rows), false);
    for (const io::edge& e : g.edges)
      met[static_cast<std::size_t>(e.source)] = met[static_cast<std::size_t>(e.target)] = true;
    const auto alone = std::ranges::count(met, false);
    const bool shown_by_larger = to == format::npy && (met.empty() || met.back());
    if (alone > 0 && !shown_by_larger)
      lose(is_list ? std::to_string(alone) + " vertices without edges"
                   : "vertices without edges after the last with one");
  }
  if (!is_list && to != format::folder && !g.ids.empty())
    write_array(beside(path), {static_cast<global_index>(g.ids.size())}, g.ids);
  switch (to) {
    case format::matrix_market:
      return std::ranges::all_of(g.weights, is_whole) ? write_market<std::int64_t>(path, std::move(g))
                                                      : write_market<double>(path, std::move(g));
    case format::edges:
      return write_list(path, std::move(g), false);
    case format::packed_edges:
      return write_list(path, std::move(g), true);
    case format::metis:
      return write_metis(path, std::move(g));
    case format::npz:
      return write_npz(path, std::move(g));
    case format::npy:
      return write_edges(path, g);
    case format::folder:
      return write_folder(path, g, source);
    case format::blocked:
      return write_blocks(path, std::move(g), parts);
    case format::ogb:
      break;
  }
}
