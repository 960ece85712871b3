// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "graph.hpp"
#include "partita/io/blocked.hpp"
#include "partita/io/folder_reading.hpp"
#include "partita/io/graph_text.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_graph.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/whole_file.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = partita::io;
using partita::global_index;
using partita::input_error;

constexpr std::array<const char*, 4> vertex_files{"features.npy", "features_csr.npz", "labels.npy",
                                                  "split.npy"};
/// How many vertices there are where nothing else says it, and links.
constexpr std::array<const char*, 6> further_files{"count.npy",       "links_train.npy",
                                                   "links_valid.npy", "links_valid_negatives.npy",
                                                   "links_test.npy",  "links_test_negatives.npy"};
using teller = std::function<void(const std::string&)>;

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

/// A copy, whole or not at all, of a file for `vertices` vertices.
void copy_whole(const fs::path& from, const fs::path& to, global_index vertices) {
  const std::string name = io::detail::name_of_file(from);
  if (from.filename() == "split.npy") {
    const auto split = io::read_npy<std::uint8_t>(from);
    if (split.shape != std::vector<global_index>{vertices})
      throw input_error(name + ": expected the shape (" + std::to_string(vertices) + ",), found " +
                        io::detail::shape_text(split.shape));
  }
  std::ifstream file(from, std::ios::binary);
  io::write_whole_file(to, [&](const auto& write) {
    std::vector<char> piece(std::size_t{1} << 20);
    while (file) {
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      write(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
    }
    if (!file.eof()) throw input_error(from.string() + ": cannot be read");
  });
}

/// Says so where there was such a file.
void remove_old(const fs::path& path, const teller& say) {
  std::error_code status;
  if (fs::remove(path, status)) say(path.string() + ": removed, it was of an earlier graph");
  if (status)
    throw input_error(path.string() + ": is of an earlier graph and cannot be removed (" + status.message() +
                      ")");
}

void create_folder(const fs::path& dir) {
  std::error_code status;
  fs::create_directories(dir, status);
  if (status) throw input_error(dir.string() + ": cannot be created (" + status.message() + ")");
}

/// Returns the names of the files.
std::vector<std::string> write_links(const fs::path& dir, const io::given_links& links, const teller& say) {
  std::vector<std::string> names;
  for (const auto& [name, part, negatives] :
       {std::tuple("links_valid", &links.validation, &links.negatives[0]),
        {"links_test", &links.test, &links.negatives[1]}}) {
    if (part->empty()) continue;
    const fs::path file = dir / names.emplace_back(name + std::string(".npy"));
    write_edges(file, *part);
    say(file.string() + ": " + std::to_string(part->size()) + " links");
    const auto count = static_cast<global_index>(negatives->vertices.size());
    if (count == 0) continue;
    const global_index columns = negatives->are_shared ? 2 : count / std::ssize(*part);
    write_array(dir / names.emplace_back(name + std::string("_negatives.npy")), {count / columns, columns},
                negatives->vertices);
  }
  return names;
}

bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code status;
  return fs::is_directory(a, status) && fs::equivalent(a, b, status);
}

/// First the new files, and then what an earlier graph had and this one does not have.
void write_folder(const fs::path& dir, const graph& g, const fs::path& source, const teller& say) {
  for (const double weight : g.weights)
    if (!(std::isfinite(weight) && weight >= 0))
      throw input_error(dir.string() + ": cannot have the weight " + std::to_string(weight) +
                        ", only finite numbers that are not negative");
  create_folder(dir);
  const bool in_place = is_same_folder(source, dir);
  write_edges(dir / "edges.npy", g.edges);
  if (!g.weights.empty())
    write_array(dir / "edge_weight.npy", {static_cast<global_index>(g.weights.size())}, g.weights);
  if (!g.ids.empty()) write_array(dir / "ids.npy", {static_cast<global_index>(g.ids.size())}, g.ids);
  const bool counted = g.links && g.data->features == 0;
  std::vector<std::string> kept;  // of the further files
  if (counted) kept.push_back("count.npy");
  if (g.data) write_vertices(dir, *g.data, counted);
  if (g.links) std::ranges::copy(write_links(dir, *g.links, say), std::back_inserter(kept));
  if (g.edge_features.rows > 0) write_edge_features(dir / "edge_features.npy", g.edge_features);
  if (!g.edge_types.empty())
    write_array(dir / "edge_type.npy", {static_cast<global_index>(g.edge_types.size())}, g.edge_types);
  const auto has = [&](const std::string& name) {
    if (!g.data) return io::detail::is_there(source / name);
    return name != "features_csr.npz" &&
           (name == "features.npy" ? g.data->features > 0 : !g.data->split.empty());
  };
  for (const std::string name : vertex_files)
    if (!g.data && !in_place && has(name)) copy_whole(source / name, dir / name, g.shape.rows);
  for (const std::string name : vertex_files)
    if (!has(name)) remove_old(dir / name, say);
  for (const std::string name : further_files) {
    const bool from_source = !g.data && io::detail::is_there(source / name);
    if (from_source && !in_place) copy_whole(source / name, dir / name, g.shape.rows);
    if (!from_source && !std::ranges::count(kept, name)) remove_old(dir / name, say);
  }
  if (g.weights.empty()) remove_old(dir / "edge_weight.npy", say);
  if (g.edge_features.rows == 0) remove_old(dir / "edge_features.npy", say);
  if (g.edge_types.empty()) remove_old(dir / "edge_type.npy", say);
  if (g.ids.empty()) remove_old(dir / "ids.npy", say);
}

/// What an edge list with a weight that is not finite would be refused for.
void require_finite(const graph& g, const std::string& source, const std::string& path) {
  const auto found = std::ranges::find_if(g.weights, [](double w) { return !std::isfinite(w); });
  if (found == g.weights.end()) return;
  const io::edge& e = g.edges[static_cast<std::size_t>(found - g.weights.begin())];
  throw input_error(source + ": the entry in row " + std::to_string(e.source) + " and column " +
                    std::to_string(e.target) + ", counted from 0, is " + std::to_string(*found) + ", which " +
                    path + " cannot have");
}

/// The number of vertices that a file has which shows none but those of its edges, or with `up_to_last`
/// those before them too.
global_index shown_vertices(const graph& g, bool up_to_last) {
  std::vector<bool> met(static_cast<std::size_t>(g.shape.rows), false);
  for (const io::edge& e : g.edges)
    met[static_cast<std::size_t>(e.source)] = met[static_cast<std::size_t>(e.target)] = true;
  if (!up_to_last) return std::ranges::count(met, true);
  return std::find(met.rbegin(), met.rend(), true).base() - met.begin();
}

/// The shape that the output has, which may have fewer vertices.
partita::matrix_shape written_shape(const std::string& path, format to, const graph& g,
                                    const std::string& source, const teller& say) {
  const bool is_list = to == format::edges || to == format::packed_edges;
  const bool is_counted = g.data || !g.ids.empty() || has_vertex_files(source) ||
                          io::detail::is_there(fs::path(source) / further_files.front());
  if (!is_list && to != format::npy && (to != format::folder || is_counted)) return g.shape;
  const global_index n = shown_vertices(g, !is_list), lost = g.shape.rows - n;
  if (lost > 0 && is_list)
    say(path + ": without " + std::to_string(lost) + " vertices without edges");
  else if (lost > 0)
    say(path + ": without the last " + std::to_string(lost) + " vertices, which have no edges");
  return {n, n};
}

/// NAME.ids.npy for NAME.mtx.
fs::path beside(fs::path path) { return path.replace_extension("ids.npy"); }

/// Whether the ids beside the output are those of the source too. An edge list and a folder have their own.
bool shares_ids(const std::string& source, const std::string& path) {
  std::error_code status;
  return beside(source) == beside(path) && !source.ends_with(".txt") && !source.ends_with(".csv") &&
         !fs::is_directory(source, status);
}

/// Follows the output. `replaced`: it was there before, so that its ids are old.
void write_ids(const std::string& path, const std::vector<global_index>& ids, bool replaced,
               const teller& say) {
  const fs::path file = beside(path);
  if (ids.empty()) {
    if (replaced) remove_old(file, say);
    return;
  }
  write_array(file, {static_cast<global_index>(ids.size())}, ids);
  say(file.string() + ": the ids of the " + std::to_string(ids.size()) + " vertices");
}

void write_as(const std::string& path, format to, graph g, const std::string& source, int parts,
              const teller& say) {
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
      return write_edges(path, g.edges);
    case format::folder:
      return whole_or_none(path, [&] { write_folder(path, g, source, say); });
    case format::blocked:
      return write_blocks(path, std::move(g), parts);
    case format::ogb:
    case format::ogb_types:
      break;
  }
}

}  // namespace

void whole_or_none(const fs::path& dir, const std::function<void()>& write) {
  std::error_code status;
  const bool is_new = !fs::exists(dir, status) && !status;
  try {
    write();
  } catch (...) {
    if (is_new) fs::remove_all(dir, status);
    throw;
  }
}

void write_edges(const fs::path& path, std::span<const io::edge> edges) {
  static_assert(sizeof(io::edge) == 2 * sizeof(std::int64_t));
  write_array(path, {std::ssize(edges), 2},
              std::span(reinterpret_cast<const std::int64_t*>(edges.data()), 2 * edges.size()));
}

void write_edge_features(const fs::path& path, const io::feature_table& table) {
  const auto write = [&]<class T>(T) {
    std::vector<T> values(static_cast<std::size_t>(table.rows * table.cols));  // (E, k)
    for (global_index e = 0; e < table.rows; ++e)
      table.fill_row(e, std::span(values).subspan(static_cast<std::size_t>(e * table.cols),
                                                  static_cast<std::size_t>(table.cols)));
    write_array(path, {table.rows, table.cols}, values);
  };
  bool is_double = false;
  table.for_row(0, [&](global_index, auto value) { is_double = sizeof value == sizeof(double); });
  if (is_double)
    write(double{});
  else
    write(float{});
}

void write_vertices(const fs::path& dir, const io::dataset& data, bool counted) {
  const global_index n = data.vertices;
  if (counted && data.features == 0) write_array(dir / "count.npy", {}, std::vector<std::int64_t>{n});
  if (data.features > 0) {
    std::vector<float> values(static_cast<std::size_t>(n * data.features));  // (n, f)
    for (global_index v = 0; v < n; ++v)
      data.vertex_features.fill_row(v, std::span(values).subspan(static_cast<std::size_t>(v * data.features),
                                                                 static_cast<std::size_t>(data.features)));
    write_array(dir / "features.npy", {n, data.features}, values);
  }
  if (!data.label_matrix.empty()) write_array(dir / "labels.npy", {n, data.classes}, data.label_matrix);
  if (!data.values.empty()) write_array(dir / "labels.npy", {n, data.classes}, data.values);
  if (!data.labels.empty()) write_array(dir / "labels.npy", {n}, data.labels);
  if (!data.split.empty()) write_array(dir / "split.npy", {n}, data.split);
}

bool has_vertex_files(const std::string& path) {
  std::error_code status;
  return fs::is_directory(path, status) && std::ranges::any_of(vertex_files, [&](const char* name) {
           return io::detail::is_there(fs::path(path) / name);
         });
}

partita::matrix_shape write_graph(const std::string& path, format to, graph g, const std::string& source,
                                  int parts, const teller& say) {
  const bool is_matrix = to == format::matrix_market || to == format::npz || to == format::blocked;
  const bool is_list = to == format::edges || to == format::packed_edges;
  if (!is_matrix && g.shape.rows != g.shape.cols)
    throw input_error(path + ": cannot have a matrix of " + to_string(g.shape) + ", only a graph");
  if (to != format::matrix_market) require_memory_for_rows(g.shape);
  if (is_list) require_finite(g, source, path);
  if (to != format::folder && (g.data || has_vertex_files(source)))
    say(path + ": without features, labels and split");
  if (to != format::folder && (g.links || has_links(source))) say(path + ": without links");
  if (to != format::folder && g.edge_features.rows > 0) say(path + ": without features of edges");
  if (to != format::folder && !g.edge_types.empty()) say(path + ": without types of edges");
  if (to == format::npy && !g.weights.empty()) say(path + ": without weights");
  const partita::matrix_shape shape = written_shape(path, to, g, source, say);
  std::vector<global_index> ids;
  const bool ids_beside = !is_list && to != format::folder;
  if (ids_beside) ids = std::move(g.ids);
  std::error_code status;
  const bool replaced = fs::exists(path, status) && !shares_ids(source, path);
  write_as(path, to, std::move(g), source, parts, say);
  if (ids_beside) write_ids(path, ids, replaced, say);
  return shape;
}
