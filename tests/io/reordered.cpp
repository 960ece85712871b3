// SPDX-License-Identifier: Apache-2.0
// Datasets in the order of their parts are the same graphs.
#include "partita/io/reordered.hpp"

#include <doctest/doctest.h>
#include <tuple>

#include "partita/io/parts.hpp"
#include "support/datasets.hpp"
#include "support/ranks.hpp"

namespace test_io_reordered {

using namespace test_support;

using entries = std::vector<std::tuple<global_index, global_index, double>>;

/// (target, source, weight) of every edge with vertices numbered by `number`, sorted.
entries adjacency(const io::dataset& data, auto number) {
  entries all;
  for (std::size_t e = 0; e < data.edges.size(); ++e)
    all.emplace_back(number(data.edges[e].target), number(data.edges[e].source),
                     data.edge_weights.empty() ? 1.0 : data.edge_weights[e]);
  std::ranges::sort(all);
  return all;
}

std::vector<std::pair<global_index, double>> features(const io::dataset& data, global_index v) {
  std::vector<std::pair<global_index, double>> row;
  data.vertex_features.for_row(
      v, [&](global_index j, auto value) { row.emplace_back(j, static_cast<double>(value)); });
  return row;
}

void check_same_graph(const io::dataset& before, const io::reordered_dataset& after,
                      const std::vector<int>& parts) {
  const io::dataset& now = after.data;
  CHECK(std::tuple(now.name, now.vertices, now.features, now.classes, now.task) ==
        std::tuple(before.name, before.vertices, before.features, before.classes, before.task));
  const auto old = [&](global_index v) { return after.old_number[static_cast<std::size_t>(v)]; };
  const auto same = [](global_index v) { return v; };
  CHECK(adjacency(now, old) == adjacency(before, same));
  CHECK(now.vertex_features.is_sparse() == before.vertex_features.is_sparse());
  const auto classes = static_cast<std::size_t>(now.classes);
  global_index v = 0;
  for (std::size_t part = 0; part < after.sizes.size(); ++part)
    for (global_index k = 0; k < after.sizes[part]; ++k, ++v) {
      const auto to = static_cast<std::size_t>(v), from = static_cast<std::size_t>(old(v));
      CHECK(parts[from] == static_cast<int>(part));
      if (k > 0) CHECK(old(v - 1) < old(v));
      CHECK(features(now, v) == features(before, old(v)));
      CHECK(now.split[to] == before.split[from]);
      if (!before.labels.empty()) CHECK(now.labels[to] == before.labels[from]);
      for (std::size_t c = 0; c < classes && before.task == io::task::labels; ++c)
        CHECK(now.label_matrix[to * classes + c] == before.label_matrix[from * classes + c]);
    }
  CHECK(v == now.vertices);
}

/// The same graph with CSR features of which two in three are left out, and several labels a vertex.
io::dataset sparse_and_multi_label(io::dataset data) {
  io::csr_array<> x{data.vertices, data.features, {0}, {}, {}};
  for (global_index v = 0; v < data.vertices; ++v) {
    data.vertex_features.for_row(v, [&](global_index j, auto value) {
      if ((v + j) % 3 != 0 || v == 4) return;
      x.columns.push_back(j);
      x.values.push_back(static_cast<double>(value));
    });
    x.offsets.push_back(static_cast<global_index>(x.columns.size()));
    for (global_index c = 0; c < data.classes; ++c)
      data.label_matrix.push_back(static_cast<std::uint8_t>((v + c) % 2));
  }
  data.vertex_features = io::feature_table(std::move(x));
  data.labels = {};
  data.edge_weights = {};
  data.task = io::task::labels;
  return data;
}

TEST_CASE("reordered: the same graph, features and labels, under other numbers") {
  const io::dataset dense = directed_graph(), sparse = sparse_and_multi_label(dense);
  for (const int count : {1, 2, 3, 8, 100}) {
    const std::vector<int> parts = io::random_parts(dense.vertices, count, 3);
    check_same_graph(dense, io::reordered(dense, parts, count), parts);
    check_same_graph(sparse, io::reordered(sparse, parts, count), parts);
  }
}

TEST_CASE("reordered: empty parts, and vertices that are in order already") {
  const io::dataset data = directed_graph(20);
  std::vector<int> parts(20, 2);
  parts[3] = parts[17] = 0;
  const io::reordered_dataset after = io::reordered(data, parts, 5);
  CHECK(after.sizes == std::vector<global_index>{2, 0, 18, 0, 0});
  CHECK(after.old_number[1] == 17);
  CHECK(after.old_number[2] == 0);
  check_same_graph(data, after, parts);
  const io::reordered_dataset same = io::reordered(data, io::even_parts(20, 3), 3);
  CHECK(same.sizes == std::vector<global_index>{7, 7, 6});
  CHECK(same.data.edges == data.edges);
  CHECK(same.data.labels == data.labels);
}

TEST_CASE("reordered: a graph without features") {
  io::dataset data = directed_graph(10);
  data.vertex_features = {};
  const std::vector<int> parts = io::random_parts(10, 2, 1);
  const io::reordered_dataset after = io::reordered(data, parts, 2);
  CHECK(after.data.vertex_features.rows == 0);
  CHECK(after.data.labels[0] == data.labels[static_cast<std::size_t>(after.old_number[0])]);
}

TEST_CASE("reordered: parts that do not fit are refused") {
  const io::dataset data = directed_graph(3);
  const auto refused = [&](const char* part, const std::vector<int>& parts, int count) {
    expect_error<shape_error>(part, [&] { (void)io::reordered(data, parts, count); });
  };
  refused("directed graph: 2 numbers of 2 parts for 3 vertices", {0, 1}, 2);
  refused("3 numbers of 0 parts for 3 vertices", {0, 0, 0}, 0);
  refused("directed graph: vertex 1 is in part 2 of 2", {0, 2, 0}, 2);
  refused("vertex 2 is in part -1 of 2", {0, 1, -1}, 2);
}

TEST_CASE("held-out links and their negatives have the new numbers of their ends") {
  io::dataset data = directed_graph();
  data.validation_links = {{0, 1}, {2, 0}}, data.test_links = {{3, 2}};
  data.negatives[1].vertices = {0, 1, 2, 3};
  std::vector<int> parts(static_cast<std::size_t>(data.vertices), 1);
  parts[2] = 0;  // the first now; 0 and 1 follow, 3 stays
  const io::dataset now = io::reordered(data, parts, 2).data;
  CHECK(now.validation_links == io::array<io::edge>{{1, 2}, {0, 1}});
  CHECK(now.test_links == io::array<io::edge>{{3, 0}});
  CHECK(now.negatives[1].vertices == io::array<std::int64_t>{1, 2, 0, 3});
}

}  // namespace test_io_reordered
