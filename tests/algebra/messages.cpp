// SPDX-License-Identifier: Apache-2.0
// Messages of functions of one's own, and the gradients that follow from these, on every policy and mesh.
#include "partita/algebra/messages.hpp"

#include "partita/algebra/edge_spmm.hpp"
#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/reproducible.hpp"
#include "partita/algebra/sddmm.hpp"
#include "support/edge_matrices.hpp"

namespace test_messages {

using namespace test_support;
using partita::algebra::message_options;
using partita::algebra::message_plan;
using partita::algebra::message_reduction;

constexpr global_index vertices = 23, width = 6;

/// Directed, with empty rows and columns, and a vertex without any edge.
std::vector<triplet<double>> edges_of_graph() {
  std::vector<triplet<double>> edges;
  for (const auto& e : sparse_entries({vertices, vertices}, 4))
    if (e.row != 20 && e.col != 20) edges.push_back(e);
  return edges;
}

constexpr auto gated = [](auto u, auto v, auto e) {
  using std::exp;
  return u * e / (1 + exp(v - e));
};
constexpr auto distance = [](auto u, auto v, auto e) {
  using std::abs;
  return abs(u - v) * e;
};
constexpr auto larger = [](auto u, auto v, auto e) { return u > 2 * v ? u * u * e : v * e * e; };
constexpr auto bent = [](auto u, auto e) {
  using std::tanh;
  return tanh(u * e);
};

/// Rows of sources and targets, a row for each edge, and sums of messages, edge by edge.
struct serial_case {
  std::vector<triplet<double>> edges = edges_of_graph();
  local_index heads = 1;  ///< 0: no values
  bool mean = false;
  std::vector<double> sources = whole({vertices, width}, field(0)),
                      targets = whole({vertices, width}, field(0)), values = {};

  void set_values() {
    for (const auto& e : edges)
      for (local_index h = 0; h < heads; ++h) values.push_back(edge_entry(e.row, e.col, h));
  }
  template <class F>
  std::vector<double> sums(const F& f) const {
    std::vector<double> z(vertices * width, 0), count(vertices, 0);
    for (const auto& e : edges) count[static_cast<std::size_t>(e.row)] += 1;
    for (std::size_t k = 0; k < edges.size(); ++k)
      for (global_index j = 0; j < width; ++j) {
        const auto at = [j](global_index i) { return static_cast<std::size_t>(i * width + j); };
        const auto h = static_cast<std::size_t>(heads == 0 ? 0 : j * heads / width);
        const double value = heads == 0 ? 1 : values[k * static_cast<std::size_t>(heads) + h];
        const double u = sources[at(edges[k].col)], v = targets[at(edges[k].row)];
        double m = 0;
        if constexpr (std::is_invocable_v<F, double, double, double>)
          m = f(u, v, value);
        else
          m = f(u, value);
        z[at(edges[k].row)] += mean ? m / count[static_cast<std::size_t>(edges[k].row)] : m;
      }
    return z;
  }
  /// Differences of sum over (v, j) of Z(v, j) field 1(v, j).
  template <class F>
  std::vector<double> differences(const F& f, std::vector<double> serial_case::*of) {
    std::vector<double> slopes;
    const auto loss = [&] {
      const std::vector<double> z = sums(f);
      double total = 0;
      for (global_index i = 0; i < vertices * width; ++i)
        total += z[static_cast<std::size_t>(i)] * element(i / width, i % width, 1);
      return total;
    };
    for (double& x : this->*of) {
      const double before = x, step = 1e-6;
      x = before + step;
      const double above = loss();
      x = before - step;
      slopes.push_back((above - loss()) / (2 * step));
      x = before;
    }
    return slopes;
  }
};

struct expected_values {
  std::vector<double> z, dsources, dtargets;
  std::map<std::tuple<global_index, global_index, global_index>, double> dvalues;
};
template <class F>
expected_values expected_of(const F& f, serial_case c) {
  c.set_values();
  expected_values all{
      c.sums(f), c.differences(f, &serial_case::sources), c.differences(f, &serial_case::targets), {}};
  const std::vector<double> of_values = c.differences(f, &serial_case::values);
  for (std::size_t k = 0; k < of_values.size(); ++k) {
    const auto& e = c.edges[k / static_cast<std::size_t>(c.heads)];
    all.dvalues[{e.row, e.col, static_cast<global_index>(k) % c.heads}] = of_values[k];
  }
  return all;
}

/// Forward and backward on one mesh, twice, against what is expected; what is added to is 1 before.
template <class F>
void check_on(const host_mesh& m, const policy& p, const F& f, const serial_case& c,
              const expected_values& expected, row_exchange rows) {
  const auto a = distribute(m, p.sparse, {vertices, vertices}, share(c.edges, m));
  const auto x = generate<double>(m, p.dense, {vertices, width}, field(0)),
             dz = generate<double>(m, p.dense, {vertices, width}, field(1));
  const local_index heads = std::max<local_index>(c.heads, 1);
  host_edges e(a, heads), de(a, heads);
  fill_edges(e, edge_entry);
  fill_edges(de, [](auto...) { return 1.0; });
  message_plan plan(a, x, f, {heads, c.mean ? message_reduction::mean : message_reduction::sum, rows});
  host_dense<> z(m, p.dense, x.row_blocking(), x.col_blocking()),
      dx(m, p.dense, x.row_blocking(), x.col_blocking());
  for (int run = 0; run < 2; ++run) {
    fill(z, -1);
    fill(dx, 1);
    fill_edges(de, [](auto...) { return 1.0; });
    m.ledger().clear();
    if (c.heads == 0)
      plan.forward(x, z);
    else
      plan.forward(x, e, z);
    same(heard(m), plan.predicted_forward(), "forward");
    m.ledger().clear();
    if (c.heads == 0)
      plan.backward(x, dz, dx);
    else
      plan.backward(x, e, dz, dx, de);
    same(heard(m), plan.predicted_backward(c.heads > 0), "backward");
    check_equals(z, expected.z, 1e-12, "Z");
    std::vector<double> both = expected.dsources;
    for (std::size_t i = 0; i < both.size(); ++i) both[i] += expected.dtargets[i] + 1;
    check_equals(dx, both, 1e-7, "dX");
    if (c.heads > 0)
      CHECK_MESSAGE(largest_error(de,
                                  [&](auto v, auto u, auto h) {
                                    return expected.dvalues.at({v, u, h}) + 1;
                                  }) < 1e-7,
                    "dE on mesh ", to_string(m.shape()), ", ", to_string(p.dense));
  }
}

template <class F>
void check_everywhere(const F& f, const serial_case& c) {
  const expected_values expected = expected_of(f, c);
  for (const auto rows : {row_exchange::full, row_exchange::sparsity_aware})
    on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9},
                    [&](const host_mesh& m, const policy& p) { check_on(m, p, f, c, expected, rows); });
}

TEST_CASE("messages of a user's function, with gradients as by differences and words as predicted") {
  check_everywhere(gated, {.heads = 1});
  check_everywhere(distance, {.heads = 3, .mean = true});
  check_everywhere(larger, {.heads = 6});
}

TEST_CASE("messages without edge values, and without targets") {
  check_everywhere(distance, {.heads = 0});
  check_everywhere(bent, {.heads = 2});
  check_everywhere(bent, {.heads = 0, .mean = true});
}

TEST_CASE("messages on tiles in parts, by several threads, and in far memory") {
  serial_case c{.heads = 3, .mean = true};
  const expected_values expected = expected_of(gated, c);
  const auto store = new_far_store();
  for (const bool far : {false, true})
    for_each_mesh(std::array{1, 4, 6}, [&](const policy& p, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const device_queue<host> q(far ? 1 : 3);
        if (far) use_far(q, {.store = store, .window = 12288});
        check_on(host_mesh(world, shape, q, 13), p, gated, c, expected, row_exchange::automatic);
      });
    });
}

TEST_CASE("e x_u is the product with an edge matrix, and has its gradients") {
  const auto graph = edges_of_graph();
  constexpr auto times = [](auto u, auto e) { return u * e; };
  on_usual_meshes(std::array{1, 4, 6, 9}, [&](const host_mesh& m, const policy& p) {
    const auto a = distribute(m, p.sparse, {vertices, vertices}, share(graph, m));
    const auto x = generate<double>(m, p.dense, {vertices, width}, field(0)),
               dz = generate<double>(m, p.dense, {vertices, width}, field(1));
    host_edges e(a, 3), de(a, 3), sampled(a, 3);
    fill_edges(e, edge_entry);
    fill_edges(de, [](auto...) { return 0.0; });
    auto z = copy(x), product = copy(x), dx = copy(x), adjoint = copy(x);
    fill(dx, 0);
    message_plan plan(a, x, times, {.heads = 3});
    edge_spmm_plan multiply(a, x, 3);
    algebra::transposed_edge_spmm_plan multiply_transposed(multiply);
    sddmm_plan sample(multiply);
    plan.forward(x, e, z);
    multiply(e, x, product);
    plan.backward(x, e, dz, dx, de);
    multiply_transposed(e, dz, adjoint);
    sample(dz, x, sampled);
    CHECK(largest_difference(collect(z), collect(product)) < 1e-12);
    CHECK(largest_difference(collect(dx), collect(adjoint)) < 1e-12);
    double largest = 0;
    for (std::size_t i = 0; i < de.values().size(); ++i)
      largest = std::max(largest, std::abs(de.values()[i] - sampled.values()[i]));
    CHECK(largest < 1e-12);
    CHECK(plan.predicted_forward() == multiply.predicted());
  });
}

TEST_CASE("sources and targets of their own, on a rectangular pattern, in float") {
  constexpr matrix_shape shape{17, 23};
  const auto entries = sparse_entries(shape, 3);
  std::vector<double> sums(shape.rows * width, 0);
  for (const auto& e : entries)
    for (global_index j = 0; j < width; ++j)
      sums[static_cast<std::size_t>(e.row * width + j)] +=
          distance(element(e.col, j), element(e.row, j, 2), 1.0);
  on_usual_meshes(std::array{1, 4, 6}, [&](const host_mesh& m, const policy& p) {
    std::vector<triplet<float>> some;
    for (const auto& e : share(entries, m)) some.push_back({e.row, e.col, 1});
    const auto a = distribute(m, p.sparse, shape, some);
    const auto x = generate<float>(m, p.dense, {shape.cols, width}, field(0)),
               t = generate<float>(m, p.dense, {shape.rows, width}, field(2));
    host_dense<float> z(m, p.dense, t.row_blocking(), t.col_blocking());
    message_plan plan(a, x, distance);
    plan.forward(x, t, nullptr, z);
    check_equals(z, std::vector<float>(sums.begin(), sums.end()), 1e-5, "Z of two sides");
  });
}

TEST_CASE("what messages are not made for is refused") {
  const auto refused = [](const device_queue<host>& q, local_index heads) {
    on_threads(1, [&](const communicator& world) {
      const host_mesh m(world, {1, 1, 1}, q);
      const auto a = distribute(m, row_1d.sparse, {5, 5}, std::vector<triplet<double>>{});
      const auto x = generate<double>(m, row_1d.dense, {5, width}, field(0));
      message_plan plan(a, x, gated, {.heads = heads});
    });
  };
  expect_error<shape_error>("4 heads do not divide a width of 6", [&] { refused(device_queue<host>(), 4); });
  expect_error<error>("message_plan is not available on a reproducible mesh",
                      [&] { refused(reproducible(device_queue<host>()), 1); });
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const auto a = distribute(m, row_1d.sparse, {5, 5}, std::vector<triplet<double>>{});
    const auto x = generate<double>(m, row_1d.dense, {5, width}, field(0));
    auto dx = copy(x);
    message_plan plan(a, x, gated, {.heads = 1});
    host_edges de(a, 1);
    expect_error<shape_error>("the gradient of an edge matrix has the heads",
                              [&] { plan.backward(x, x, nullptr, x, dx, dx, &de); });
  });
}

}  // namespace test_messages
