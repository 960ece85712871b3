// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "graph.hpp"
#include "partita/io/blocked.hpp"
#include "partita/io/csv.hpp"
#include "partita/io/dataset.hpp"
#include "partita/io/folder_reading.hpp"
#include "partita/io/graph_text.hpp"
#include "partita/io/gzip.hpp"
#include "partita/io/matrix_market.hpp"
#include "partita/io/metis_graph.hpp"
#include "partita/io/npz.hpp"
#include "partita/io/ogb.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = partita::io;
using partita::global_index;
using partita::input_error;

graph from_entries(partita::matrix_shape shape, std::vector<partita::triplet<double>> entries) {
  graph g;
  g.shape = shape;
  g.edges.reserve(entries.size());
  g.weights.reserve(entries.size());
  for (const auto& [row, col, value] : entries) {
    g.edges.push_back({row, col});
    g.weights.push_back(value);
  }
  return g;
}

graph from_list(io::edge_list list) {
  graph g;
  g.shape = {list.vertices(), list.vertices()};
  g.edges = std::move(list.edges);
  g.weights = std::move(list.weights);
  // Ascending, so without gaps where the last one is their number less one.
  if (!list.ids.empty() && list.ids.back() != list.vertices() - 1) g.ids = std::move(list.ids);
  return g;
}

graph from_metis(const io::metis_graph& lists) {
  graph g;
  g.shape = {lists.vertices(), lists.vertices()};
  g.edges.reserve(lists.neighbours.size());
  for (global_index v = 0; v < lists.vertices(); ++v)
    for (auto e = static_cast<std::size_t>(lists.offsets[static_cast<std::size_t>(v)]);
         e < static_cast<std::size_t>(lists.offsets[static_cast<std::size_t>(v) + 1]); ++e)
      g.edges.push_back({v, lists.neighbours[e]});
  g.weights.assign(lists.edge_weights.begin(), lists.edge_weights.end());
  return g;
}

graph from_blocks(const io::blocked_file& file) {
  graph g;
  g.shape = file.header().shape;
  const auto entries = static_cast<std::size_t>(file.header().entries);
  g.edges.reserve(entries);
  g.weights.reserve(entries);
  for (std::size_t k = 0; k < file.header().blocks.size(); ++k) {
    const auto block = file.read_block(k);
    for (std::size_t row = 0; row + 1 < block.offsets.size(); ++row)
      for (auto e = static_cast<std::size_t>(block.offsets[row]);
           e < static_cast<std::size_t>(block.offsets[row + 1]); ++e)
        g.edges.push_back(
            {file.header().blocks[k].rows.begin + static_cast<global_index>(row), block.columns[e]});
    g.weights.insert(g.weights.end(), block.values.begin(), block.values.end());
  }
  return g;
}

/// Two vertices in each row; there are as many vertices as the largest says.
graph from_npy(const std::string& path) {
  graph g;
  g.shape.rows = g.shape.cols = vertices_of_npy(path);
  const auto table = io::read_npy<std::int64_t>(path);
  g.edges.reserve(static_cast<std::size_t>(table.rows()));
  for (std::size_t k = 0; k < table.values.size(); k += 2)
    g.edges.push_back({table.values[k], table.values[k + 1]});
  return g;
}

/// The edges of a folder, which may have nothing else.
graph from_folder(const std::string& path) {
  const fs::path dir = path;
  graph g = from_npy((dir / "edges.npy").string());
  for (const auto& [name, n] : counted_vertices(path)) {
    if (n < g.shape.rows)
      throw input_error((dir / "edges.npy").string() + ": a vertex is outside the graph of " +
                        std::to_string(n) + " vertices, which " + name + " has");
    g.shape = {n, n};
  }
  if (fs::exists(dir / "ids.npy")) g.ids = io::read_npy<std::int64_t>(dir / "ids.npy").values;
  const auto edges = static_cast<global_index>(g.edges.size());
  namespace files = io::detail;
  if (const fs::path rows = dir / "edge_features.npy"; files::is_there(rows))
    g.edge_features = files::map_edge_features(rows.string(), edges, "edges.npy");
  if (const fs::path types = dir / "edge_type.npy"; files::is_there(types))
    g.edge_types = files::edge_types(types.string(), edges);
  if (const fs::path weights = dir / "edge_weight.npy"; files::is_there(weights))
    g.weights = std::move(files::map_edge_weights(weights.string(), edges, "edges.npy").edit());
  return g;
}

/// The columns after source and target of a table of edges, a row for each edge, in the order of the file.
class edge_columns {
 public:
  edge_columns(const std::string& path, int threads)
      : text_(fs::path(path)),
        table_(io::parse_csv<double>(text_, threads, io::table_form::edge_list)),
        path_(path) {}

  void give_to(graph& g, const changes& wanted) const {
    const global_index first = wanted.edge_types ? 3 : 2;
    const char* const more = !wanted.edge_types     ? " and features"
                             : wanted.edge_features ? ", type and features"
                                                    : " and type";
    if (table_.rows != static_cast<global_index>(g.edges.size()) ||
        (wanted.edge_features ? table_.cols <= first : table_.cols != first))
      throw input_error(path_ + ": expected source, target" + more + " in each of the " +
                        std::to_string(g.edges.size()) + " lines of edges, found " +
                        std::to_string(table_.rows) + " rows of " + std::to_string(table_.cols) + " columns");
    if (wanted.edge_types) give_types(g);
    if (wanted.edge_features) give_features(g, first);
  }

 private:
  double at(global_index row, global_index col) const {
    return table_.values[static_cast<std::size_t>(row * table_.cols + col)];
  }
  [[noreturn]] void refuse(global_index row, const std::string& reason) const {
    io::fail_at_row(text_, row, reason, io::table_form::edge_list);
  }

  void give_types(graph& g) const {
    std::vector<std::int64_t> types;
    for (global_index row = 0; row < table_.rows; ++row) {
      const double type = at(row, 2);
      if (!(type >= 0 && type < static_cast<double>(table_.rows)) || type != std::floor(type))
        refuse(row, "the type of the edge is not a whole number from 0, less than the number of edges");
      types.push_back(static_cast<std::int64_t>(type));
    }
    g.edge_types = std::move(types);
  }
  void give_features(graph& g, global_index first) const {
    std::vector<float> values;  // (E, k)
    for (global_index row = 0; row < table_.rows; ++row)
      for (global_index col = first; col < table_.cols; ++col) {
        values.push_back(static_cast<float>(at(row, col)));
        if (!std::isfinite(values.back()))
          refuse(row, "feature " + std::to_string(col - first) + " is not a finite 32-bit number");
      }
    g.edge_features = io::feature_table(table_.rows, table_.cols - first, std::move(values));
  }

  io::text_source text_;
  io::number_table<double> table_;
  std::string path_;
};

graph from_ogb(const std::string& path, int threads, std::optional<std::size_t> unpack_limit) {
  graph g;
  g.data = io::load_ogb(path, io::inverse_edges::omitted, threads, unpack_limit);
  g.shape = {g.data->vertices, g.data->vertices};
  g.edges = std::move(g.data->edges.edit());
  g.weights = std::move(g.data->edge_weights.edit());
  g.edge_features = std::move(g.data->edge_features);
  g.edge_types = std::move(g.data->edge_types);
  g.links = io::load_ogb_links(path, g.data->vertices);
  return g;
}

graph read_as(const std::string& path, format from, io::further_columns further, int threads,
              std::optional<std::size_t> unpack_limit) {
  switch (from) {
    case format::matrix_market: {
      auto a = io::read_matrix_market(path, threads);
      return from_entries(a.shape, std::move(a.entries));
    }
    case format::npz: {
      auto a = io::read_sparse_npz(path, unpack_limit);
      return from_entries(a.shape, std::move(a.entries));
    }
    case format::edges:
      return from_list(io::read_edge_list(path, threads, further));
    case format::packed_edges:
      return from_list(io::parse_edge_list(io::read_gzip(path, unpack_limit), path, threads, further));
    case format::metis:
      return from_metis(io::read_metis_graph(path, threads));
    case format::blocked:
      return from_blocks(io::blocked_file(path));
    case format::npy:
      return from_npy(path);
    case format::folder:
      return from_folder(path);
    case format::ogb:
      return from_ogb(path, threads, unpack_limit);
    case format::ogb_types:
      break;
  }
  return {};
}

void add_inverses(graph& g) {
  const std::size_t count = g.edges.size();
  std::vector<global_index> rows(count);
  std::iota(rows.begin(), rows.end(), global_index{0});
  g.edges.reserve(2 * count);
  if (!g.weights.empty()) g.weights.reserve(2 * count);
  for (std::size_t e = 0; e < count; ++e) {
    if (g.edges[e].source == g.edges[e].target) continue;
    g.edges.push_back({g.edges[e].target, g.edges[e].source});
    rows.push_back(static_cast<global_index>(e));
    if (!g.weights.empty()) g.weights.push_back(g.weights[e]);
  }
  if (g.edge_features.rows > 0) g.edge_features = g.edge_features.rows_at(rows);
  if (g.edge_types.empty()) return;
  std::vector<std::int64_t> types;
  for (const global_index e : rows) types.push_back(g.edge_types[static_cast<std::size_t>(e)]);
  g.edge_types = std::move(types);
}

bool before(const io::edge& a, const io::edge& b) {
  return a.source != b.source ? a.source < b.source : a.target < b.target;
}

bool same(const io::edge& a, const io::edge& b) { return a.source == b.source && a.target == b.target; }

/// Each edge once, without loops, in ascending order; weights of repeated edges in the order of the file.
void make_simple(graph& g) {
  if (g.weights.empty()) {
    std::erase_if(g.edges, [](const io::edge& e) { return e.source == e.target; });
    std::ranges::sort(g.edges, before);
    const auto repeated = std::ranges::unique(g.edges, same);
    g.edges.erase(repeated.begin(), repeated.end());
    return;
  }
  std::vector<std::size_t> order(g.edges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t e) { return g.edges[e].source == g.edges[e].target; });
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return same(g.edges[a], g.edges[b]) ? a < b : before(g.edges[a], g.edges[b]);
  });
  std::vector<io::edge> edges;
  std::vector<double> weights;
  edges.reserve(order.size());
  weights.reserve(order.size());
  for (const std::size_t e : order) {
    if (!edges.empty() && same(edges.back(), g.edges[e])) {
      weights.back() += g.weights[e];
      continue;
    }
    edges.push_back(g.edges[e]);
    weights.push_back(g.weights[e]);
  }
  g.edges = std::move(edges);
  g.weights = std::move(weights);
}

/// Of the components, whichever way edges go, the one with the most vertices, of two the one with the first.
void keep_largest_component(graph& g) {
  const auto n = static_cast<std::size_t>(g.shape.rows);
  std::vector<global_index> parent(n), size(n, 0), place(n, -1);
  std::iota(parent.begin(), parent.end(), global_index{0});
  const auto root = [&](global_index v) {
    for (global_index* p = &parent[static_cast<std::size_t>(v)]; *p != v;
         p = &parent[static_cast<std::size_t>(v)])
      v = *p = parent[static_cast<std::size_t>(*p)];
    return v;
  };
  for (const io::edge& e : g.edges) {
    const global_index a = root(e.source), b = root(e.target);
    parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }
  for (std::size_t v = 0; v < n; ++v) ++size[static_cast<std::size_t>(root(static_cast<global_index>(v)))];
  const auto largest = std::ranges::max_element(size) - size.begin();
  std::vector<global_index> ids;
  for (std::size_t v = 0; v < n; ++v) {
    if (root(static_cast<global_index>(v)) != largest) continue;
    place[v] = static_cast<global_index>(ids.size());
    ids.push_back(g.ids.empty() ? static_cast<global_index>(v) : g.ids[v]);
  }
  std::size_t kept = 0;
  for (std::size_t e = 0; e < g.edges.size(); ++e) {
    const auto [source, target] = g.edges[e];
    if (place[static_cast<std::size_t>(source)] < 0) continue;
    if (!g.weights.empty()) g.weights[kept] = g.weights[e];
    g.edges[kept++] = {place[static_cast<std::size_t>(source)], place[static_cast<std::size_t>(target)]};
  }
  g.edges.resize(kept);
  if (!g.weights.empty()) g.weights.resize(kept);
  if (ids.size() < n) g.ids = std::move(ids);
  g.shape = {std::ssize(g.ids.empty() ? parent : g.ids), std::ssize(g.ids.empty() ? parent : g.ids)};
}

}  // namespace

bool has_links(const std::string& path) {
  std::error_code status;
  return fs::is_directory(path, status) &&
         std::ranges::any_of(std::array{"links_train.npy", "links_valid.npy", "links_test.npy"},
                             [&](const char* name) { return fs::exists(fs::path(path) / name, status); });
}

graph read_graph(const std::string& path, format from, changes wanted, int threads,
                 std::optional<std::size_t> unpack_limit) {
  const bool two_columns = wanted.unweighted || wanted.edge_features || wanted.edge_types;
  graph g = read_as(path, from, two_columns ? io::further_columns::ignored : io::further_columns::weights,
                    threads, unpack_limit);
  if (g.shape.rows == 0) throw input_error(path + ": has no vertices");
  if (wanted.unweighted) g.weights = {};
  if (wanted.edge_features || wanted.edge_types) edge_columns(path, threads).give_to(g, wanted);
  if (std::ranges::all_of(g.weights, [](double w) { return w == 1; })) g.weights = {};
  if ((wanted.undirected || wanted.simple || wanted.largest_component) && g.shape.rows != g.shape.cols)
    throw input_error(path + ": the matrix is " + to_string(g.shape) + ", which is no graph");
  if (wanted.simple || wanted.largest_component)
    for (const auto& [is_there, what] :
         {std::pair(g.edge_features.rows > 0, "features"), {!g.edge_types.empty(), "types"}})
      if (is_there)
        throw input_error(path + ": --simple and --largest-component drop edges, and their " + what +
                          " cannot follow");
  if (wanted.undirected) add_inverses(g);
  if (wanted.simple) make_simple(g);
  if (wanted.largest_component) {
    if (g.data || (from == format::folder && (!counted_vertices(path).empty() || has_links(path))))
      throw input_error(path +
                        ": --largest-component leaves out vertices, and features and links cannot follow");
    require_memory_for_rows(g.shape);
    keep_largest_component(g);
  }
  return g;
}
