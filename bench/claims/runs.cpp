// SPDX-License-Identifier: Apache-2.0
#include "runs.hpp"

#include "../support/balance.hpp"
#include "../support/pipeline_gradients.hpp"
#include "../support/planted_graph.hpp"
#include "../support/rmat_dataset.hpp"
#include "partita/compiled/host_f64.hpp"

namespace bench::claims {

using namespace partita;
using base::random_bits, base::random_uniform;

namespace {

/// What `work` returns on rank 0.
template <class Work>
auto on_ranks(mesh_shape shape, Work work) {
  decltype(work(std::declval<const mesh<host>&>())) found{};
  threads::run(shape.size(), [&](const communicator& world) {
    auto mine = work(mesh<host>(world, shape));
    if (world.rank() == 0) found = std::move(mine);
  });
  return found;
}

void add_vertices(io::dataset& d) {
  std::vector<float> x;
  for (global_index v = 0; v < d.vertices; ++v) {
    for (global_index j = 0; j < d.features; ++j) x.push_back(static_cast<float>(random_uniform(5, v, j)));
    d.labels.push_back(
        static_cast<std::int64_t>(random_bits(6, v, 0) % static_cast<std::uint64_t>(d.classes)));
    const bool trains = random_uniform(7, v, 0) < (4 * v < d.vertices ? 0.9 : 0.2);
    d.split.push_back(static_cast<std::uint8_t>(trains ? 1 : 2 + v % 2));
  }
  d.vertex_features = io::feature_table(d.vertices, d.features, std::move(x));
}

}  // namespace

io::dataset counts(global_index vertices, global_index features, global_index classes) {
  io::dataset d;
  d.name = "counts";
  d.vertices = vertices, d.features = features, d.classes = classes;
  return d;
}

io::dataset random_graph(global_index vertices, global_index degree, global_index features,
                         global_index classes) {
  io::dataset d = counts(vertices, features, classes);
  d.name = "a random directed graph";
  std::vector<global_index> last_target(static_cast<std::size_t>(vertices), -1);
  for (global_index v = 0; v < vertices; ++v) {
    for (global_index k = 0; k < degree; ++k) {
      const auto u = static_cast<std::size_t>(random_bits(3, v, k) % static_cast<std::uint64_t>(vertices));
      if (std::exchange(last_target[u], v) != v && static_cast<global_index>(u) != v)
        d.edges.push_back({static_cast<global_index>(u), v});
    }
  }
  add_vertices(d);
  return d;
}

io::dataset complete_graph(global_index vertices, global_index features, global_index classes) {
  io::dataset d = counts(vertices, features, classes);
  d.name = "a complete graph";
  for (global_index v = 0; v < vertices; ++v)
    for (global_index u = 0; u < vertices; ++u)
      if (u != v) d.edges.push_back({u, v});
  add_vertices(d);
  std::ranges::fill(d.split.edit(), std::uint8_t{1});
  return d;
}

io::dataset planted_dataset(global_index vertices, global_index communities, double mixing,
                            global_index classes, global_index features, global_index degree) {
  io::dataset d = counts(vertices, features, classes);
  d.name = "planted communities";
  planted how;
  how.vertices = vertices, how.communities = communities, how.mixing = mixing, how.degree = degree;
  for (const auto& e : planted_graph(how)) d.edges.push_back({e.col, e.row});
  add_vertices(d);
  return d;
}

io::dataset rmat_graph(int scale, global_index features, global_index classes) {
  return rmat_dataset(scale, features, classes);
}

nn::training_result train(const io::dataset& d, const nn::training_options& o, const policy& p,
                          mesh_shape shape, mesh_shape inside) {
  return on_ranks(shape, [&](const mesh<host>& m) { return nn::train<double>(m, d, o, p, inside); });
}

std::vector<double> trained(const io::dataset& d, const nn::training_options& o, const policy& p,
                            mesh_shape shape) {
  return on_ranks(shape, [&](const mesh<host>& m) {
    const auto t = nn::make_training<double>(m, d, o, p, {1, 1, 1});
    t->run();
    const auto values = t->parameters().values().values();
    return std::vector<double>(values.begin(), values.end());
  });
}

nn::max_and_total predicted_words(const io::dataset& d, const nn::training_options& o, const policy& p,
                                  mesh_shape shape) {
  return on_ranks(shape, [&](const mesh<host>& m) { return nn::predict_words<double>(m, d, o, p); });
}

double rehearsed_seconds(const io::dataset& d, const nn::training_options& o, const policy& p,
                         mesh_shape shape, const emulated::machine& on) {
  double found = 0;
  threads::run(shape.size(), [&](const communicator& world) {
    const communicator there = emulated::cluster(world, on);
    const mesh<host> m(there, shape, emulated::charged(there, device_queue<host>(1)));
    const nn::policy_cost cost = nn::predict_cost<double>(m, d, o, p);
    if (world.rank() == 0) found = cost.seconds;
  });
  return found;
}

double gradient_error(const io::dataset& d, const nn::training_options& o, const policy& p,
                      mesh_shape shape) {
  return on_ranks(shape, [&](const mesh<host>& m) {
    return nn::trainer<double, host>(m, d, o, nn::make_model<double>(m, d, o, p)).gradient_error(1e-5);
  });
}

double busiest_multiplications(const io::dataset& d, const policy& p, mesh_shape shape) {
  return on_ranks(shape, [&](const mesh<host>& m) {
    const auto a =
        distribute(m, p.sparse, {d.vertices, d.vertices}, partita::graph::gcn_normalized(m.world(), d));
    const spmm_plan multiply(a, p.dense, blocking::even(d.classes, m.shape(), nesting::cols));
    const global_index mine = multiply.multiplications();
    const nn::max_and_total all = nn::summarize(m.world(), mine);
    return static_cast<double>(all.max_rank * m.shape().size()) / static_cast<double>(all.total);
  });
}

double history_gradient_error(const io::dataset& d, nn::training_options o) {
  o.pipeline = {.stages = 2, .chunks = 4, .window = 2, .compensate = false};
  return on_ranks({2, 1, 1}, [&](const mesh<host>& m) { return bench::history_gradient_error(m, d, o, 9); });
}

double mean_over_orders_error(const io::dataset& d, const nn::training_options& o) {
  return on_ranks({2, 1, 1}, [&](const mesh<host>& m) {
    return bench::mean_over_orders_error(m, d, o, row_1d, {1, 1, 1});
  });
}

traffic of_operation(const nn::training_result& r, operation kind) {
  traffic v;
  for (const comm::ledger_entry& e : r.ledger)
    if (e.kind == kind && (e.phase == "forward" || e.phase == "backward")) v += e.received;
  return v;
}

}  // namespace bench::claims
