// SPDX-License-Identifier: Apache-2.0
// What counts of edges say of a policy is what a set-up says: words and bytes of every rank.
#include "partita/train/policy_cost.hpp"

#include <set>

#include "laws/training_laws.hpp"

using namespace test_support;

namespace {

/// Both directions of each edge, in ascending order.
io::dataset symmetric_graph(global_index n) {
  io::dataset d = directed_graph(n);
  d.edge_weights.edit().clear();
  std::vector<io::edge>& edges = d.edges.edit();
  const std::vector<io::edge> one_way = edges;
  for (const io::edge& e : one_way) edges.push_back({e.target, e.source});
  const auto ends = [](const io::edge& e) { return std::pair(e.source, e.target); };
  std::ranges::sort(edges, {}, ends);
  edges.erase(std::ranges::unique(edges).begin(), edges.end());
  return d;
}

std::size_t repeated_edges(const io::dataset& d) {
  std::set<std::pair<global_index, global_index>> places;
  for (const io::edge& e : d.edges) places.emplace(e.source, e.target);
  return d.edges.size() - places.size();
}

/// With loops, most edges into the first vertices, in no order; each edge once or with some repeated.
io::dataset uneven_graph(global_index n, bool repeats = false) {
  io::dataset d = directed_graph(n);
  for (global_index v = 0; v < n; v += 3) d.edges.push_back({v, v});
  for (global_index v = 0; v < 4 * n; ++v)
    d.edges.push_back({static_cast<global_index>(base::random_bits(7, v, 0) % 61), v % 5});
  if (!repeats) {
    std::set<std::pair<global_index, global_index>> places;
    std::erase_if(d.edges.edit(),
                  [&](const io::edge& e) { return !places.emplace(e.source, e.target).second; });
  }
  d.edge_weights.edit().assign(d.edges.size(), 0.5F);
  return d;
}

void check_costs(const io::dataset& d, const nn::training_options& o, const policy& p, mesh_shape shape) {
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    graph::edge_counts edges(world, d);
    const nn::policy_cost cost = nn::predict_cost<double>(m, edges, o, p);
    const mesh<host> other(world, shape);
    memory::memory_meter& meter = *other.queue().meter();
    const nn::trainer<double, host> set_up(other, d, o, nn::make_model<double>(other, d, o, p));
    const nn::max_and_total words = nn::summarize(world, set_up.predicted().words);
    const nn::max_and_total bytes = nn::summarize(world, static_cast<global_index>(meter.peak()));
    INFO(o.model, ", ", std::string(p.name), " on ", to_string(shape), ", ", d.edges.size(), " edges");
    if (repeated_edges(d) > 0) {
      CHECK(cost.words.total >= words.total);
      CHECK(cost.buffer_bytes.total >= bytes.total);
    } else {
      CHECK(cost.words.max_rank == words.max_rank);
      CHECK(cost.words.total == words.total);
      CHECK(cost.buffer_bytes.max_rank == bytes.max_rank);
      CHECK(cost.buffer_bytes.total == bytes.total);
    }
  });
}

}  // namespace

TEST_CASE("counts say what every policy moves and holds") {
  nn::training_options o, balanced = o;
  balanced.blocks = graph::vertex_blocks::balanced;
  nn::training_options moving = o;
  moving.stationary = stationary::c;  // else repeated edges may decide what moves along col
  for_each_usual_mesh(std::array{1, 2, 3, 4, 6, 8, 9, 12}, [&](const policy& p, mesh_shape shape) {
    check_costs(directed_graph(), o, p, shape);
    check_costs(symmetric_graph(61), o, p, shape);
    check_costs(uneven_graph(61), balanced, p, shape);
    check_costs(uneven_graph(61, true), moving, p, shape);
  });
}

TEST_CASE("sparse features") {
  io::dataset d = directed_graph();
  io::csr_array<float> features;
  features.rows = d.vertices;
  features.cols = d.features = 40;
  features.offsets = {0};
  for (global_index v = 0; v < d.vertices; ++v) {
    for (global_index j = v % 7; j < 40; j += 1 + v % 5) {
      features.columns.push_back(static_cast<local_index>(j));
      features.values.push_back(1);
    }
    features.offsets.push_back(std::ssize(features.columns));
  }
  d.vertex_features = io::feature_table(std::move(features));
  for_each_usual_mesh(std::array{1, 3, 6},
                      [&](const policy& p, mesh_shape shape) { check_costs(d, {}, p, shape); });
}

TEST_CASE("counts say what wide and narrow products move") {
  nn::training_options o;
  o.layers = 2;
  for (const global_index hidden : {1, 100}) {
    o.hidden = {hidden};
    for_each_usual_mesh(std::array{4, 6, 12}, [&](const policy& p, mesh_shape shape) {
      check_costs(uneven_graph(150), o, p, shape);
    });
  }
}

TEST_CASE("every model") {
  for (const nn::training_options& o : every_variant({.hidden = {8}, .hops = 3}))
    for (const policy& p : named_policies) {
      if (sanitized && o.model != "gat") continue;
      check_costs(uneven_graph(61), o, p, default_mesh(p, 6));
      check_costs(symmetric_graph(61), o, p, default_mesh(p, 8));
    }
}

TEST_CASE("tiles of several parts are set up") {
  nn::training_options o;
  on_threads(4, [&](const communicator& world) {
    const io::dataset d = directed_graph();
    const mesh<host> m(world, {2, 2, 1}, device_queue<host>(), 40);
    const nn::trainer<double, host> set_up(m, d, o, nn::make_model<double>(m, d, o, grid_2d));
    CHECK(nn::predict_words<double>(m, d, o, grid_2d).total ==
          nn::summarize(world, set_up.predicted().words).total);
  });
}

TEST_CASE("one pass serves all blocks that were expected, and others are counted anew") {
  const io::dataset d = uneven_graph(61);
  on_threads(6, [&](const communicator& world) {
    graph::edge_counts edges(world, d, 2);
    std::vector<mesh<host>> meshes;
    for (const mesh_shape shape : {mesh_shape{6, 1, 1}, mesh_shape{2, 1, 3}, mesh_shape{3, 2, 1}}) {
      meshes.emplace_back(world, shape);
      if (shape.row != 3) edges.expect(graph::vertex_blocking(meshes.back(), d, {}));
    }
    for (const transfer::side of : {transfer::side::straight, transfer::side::transposed})
      for (const bool loops : {true, false})
        for (const mesh<host>& m : meshes) {
          const blocking rows = graph::vertex_blocking(m, d, {});
          const layout l = split_3d.sparse;
          const transfer::tile_counts found = edges.tiles(m.shape(), l, rows, of, loops);
          const transfer::tile_counts expected =
              graph::edge_counts(world, d).tiles(m.shape(), l, rows, of, loops);
          CHECK(found.nonzeros == expected.nonzeros);
          CHECK(found.needed.of_tile == expected.needed.of_tile);
        }
  });
}

TEST_CASE("an edge outside the graph is refused") {
  io::dataset d = directed_graph();
  d.edges.push_back({0, 61});
  d.edge_weights.push_back(1);
  on_threads(1, [&](const communicator& world) {
    CHECK_THROWS_AS(nn::predict_cost<double>(mesh<host>(world, {1, 1, 1}), d, {}, row_1d), shape_error);
  });
}
