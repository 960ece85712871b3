// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "graph.hpp"
#include "partita/base/error.hpp"
#include "partita/io/ogb_types.hpp"

namespace {

namespace fs = std::filesystem;
namespace io = partita::io;

void write_type(const fs::path& dir, const io::dataset& data,
                const std::function<void(const std::string&)>& say) {
  fs::create_directories(dir);
  write_vertices(dir, data, true);
  say(dir.string() + ": " + std::to_string(data.vertices) + " vertices, " + std::to_string(data.features) +
      " features" + (data.split.empty() ? "" : ", labels and split"));
}

void write_types(const io::ogb_types& graph, const std::string& out,
                 const std::function<void(const std::string&)>& say) {
  const fs::path vertices = fs::path(out) / "vertices", edges = fs::path(out) / "edges";
  for (const auto& type : graph.types()) write_type(vertices / type.name, graph.vertices(type), say);
  fs::create_directories(edges);
  for (const auto& relation : graph.relations()) {
    const std::string &source = graph.types()[relation.source].name,
                      &target = graph.types()[relation.target].name;
    const std::string name = (edges / (source + '-' + relation.name + '-' + target)).string();
    const io::array<io::edge> found = graph.edges(relation);
    write_edges(name + ".npy", found);
    const io::feature_table features = graph.edge_features(relation, std::ssize(found));
    if (features.rows > 0) write_edge_features(name + ".features.npy", features);
    say(name + ".npy: " + std::to_string(found.size()) + " edges" +
        (features.rows > 0 ? ", " + std::to_string(features.cols) + " features" : ""));
  }
}

}  // namespace

void convert_types(const std::string& in, const std::string& out, int threads,
                   std::optional<std::size_t> unpack_limit,
                   const std::function<void(const std::string&)>& say) try {
  const io::ogb_types graph(in, threads, unpack_limit);
  whole_or_none(out, [&] { write_types(graph, out, say); });
} catch (const fs::filesystem_error& e) {
  throw partita::input_error(e.path1().string() + ": cannot be created (" + e.code().message() + ")");
}
