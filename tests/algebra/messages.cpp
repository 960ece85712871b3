// SPDX-License-Identifier: Apache-2.0
// Messages of functions of one's own, and the gradients that follow from these, on every policy and mesh.
#include "partita/algebra/messages.hpp"

#include <set>

#include "partita/algebra/edge_spmm.hpp"
#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/sddmm.hpp"
#include "support/serial_messages.hpp"

namespace test_messages {

using namespace test_support;
using partita::algebra::message_options;
using partita::algebra::message_plan;

constexpr global_index vertices = message_vertices, width = message_width;

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

constexpr auto attentive = [](auto u, auto v, auto e, auto p) {
  const auto x = u + v + e;
  return p[0] * (x > 0 ? x : 0.2 * x) + p[1];
};
constexpr auto scaled = [](auto u, auto e, auto p) { return p[0] * u * e; };

/// Forward and backward on one mesh, twice, against what is expected; what is added to is 1 before.
template <class F>
void check_on(const host_mesh& m, const policy& p, const F& f, const serial_messages& c,
              const expected_messages& expected, row_exchange rows) {
  constexpr bool learns = local::parameter_count<F>() > 0;
  const auto a = distribute(m, p.sparse, {vertices, vertices}, share(c.edges, m));
  const auto x = generate<double>(m, p.dense, {vertices, width}, field(0)),
             dz = generate<double>(m, p.dense, {vertices, width}, field(1));
  const auto parameters = generate<replicated, double>(
      m, {static_cast<global_index>(local::parameter_count<F>()), c.parameter_columns}, field(3));
  const local_index heads = std::max<local_index>(c.heads, 1);
  host_edges e(a, heads), de(a, heads);
  fill_edges(e, edge_entry);
  message_plan plan(a, x, f, {heads, c.reduction, rows});
  host_dense<> z(m, p.dense, x.row_blocking(), x.col_blocking()),
      dx(m, p.dense, x.row_blocking(), x.col_blocking());
  auto dp = copy(parameters);
  const bool has_values = c.heads > 0;
  for (const bool part : {false, true}) {
    fill(z, -1);
    fill(dx, 1);
    fill(dp, part ? 0 : 1);
    fill_edges(de, [](auto...) { return 1.0; });
    m.ledger().clear();
    plan.forward(x, x, has_values ? &e : nullptr, z, &parameters);
    same(heard(m), plan.predicted_forward(), "forward");
    m.ledger().clear();
    if (part)
      plan.backward_part(x, x, has_values ? &e : nullptr, dz, &dx, &dx, has_values ? &de : nullptr,
                         &parameters, &dp);
    else
      plan.backward(x, x, has_values ? &e : nullptr, dz, dx, dx, has_values ? &de : nullptr, &parameters,
                    &dp);
    same(heard(m), plan.predicted_backward(has_values, learns && !part), "backward");
    check_equals(z, expected.z, 1e-12, "Z");
    std::vector<double> both = expected.dsources, learned = expected.dparameters;
    for (std::size_t i = 0; i < both.size(); ++i) both[i] += expected.dtargets[i] + 1;
    check_equals(dx, both, 1e-7, "dX");
    if (part) algebra::sum_parts(m, dp.values());
    for (double& slope : learned) slope += part ? 0 : 1;
    check_equals(dp, learned, 1e-7, "dP");
    const auto of_edge = [&](auto v, auto u, auto h) { return expected.dvalues.at({v, u, h}) + 1; };
    if (has_values) CHECK_MESSAGE(largest_error(de, of_edge) < 1e-7, "dE on mesh ", to_string(m.shape()));
  }
}

template <class F>
void check_everywhere(const F& f, const serial_messages& c) {
  const expected_messages expected = expected_of(f, c);
  for (const auto rows : {row_exchange::full, row_exchange::sparsity_aware})
    on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9},
                    [&](const host_mesh& m, const policy& p) { check_on(m, p, f, c, expected, rows); });
}

TEST_CASE("messages of a user's function, with gradients as by differences and words as predicted") {
  check_everywhere(gated, {.heads = 1});
  check_everywhere(distance, {.heads = 3, .reduction = message_reduction::mean});
  check_everywhere(larger, {.heads = 6});
}

TEST_CASE("messages without edge values, and without targets") {
  check_everywhere(distance, {.heads = 0});
  check_everywhere(bent, {.heads = 2});
  check_everywhere(bent, {.heads = 0, .reduction = message_reduction::mean});
}

TEST_CASE("messages with parameters for each column, for each head and for all, and their gradients") {
  check_everywhere(algebra::with_parameters<2>(attentive), {.heads = 1});
  check_everywhere(algebra::with_parameters<2>(attentive), {.heads = 6, .parameter_columns = 3});
  check_everywhere(algebra::with_parameters<1>(scaled),
                   {.heads = 2, .reduction = message_reduction::mean, .parameter_columns = 1});
}

TEST_CASE("the largest and the smallest messages, with gradients at the entries that have them") {
  check_everywhere(gated, {.heads = 3, .reduction = message_reduction::max});
  check_everywhere(bent, {.heads = 6, .reduction = message_reduction::min});
  check_everywhere(algebra::with_parameters<2>(attentive),
                   {.heads = 1, .reduction = message_reduction::min, .parameter_columns = 2});
}

TEST_CASE("among equal messages the one of the smallest column has the gradient; NaN wins") {
  constexpr auto same = [](auto u, auto e) { return u * 0 + e; };
  const auto graph = edges_of_messages();
  const auto odd = graph[graph.size() / 2];
  std::map<global_index, global_index> first;
  for (const auto& e : graph) {
    const auto at = first.try_emplace(e.row, e.col).first;
    at->second = std::min(at->second, e.col);
  }
  on_usual_meshes(std::array{1, 2, 3, 6, 8, 9}, [&](const host_mesh& m, const policy& p) {
    const auto a = distribute(m, p.sparse, {vertices, vertices}, share(graph, m));
    const auto x = generate<double>(m, p.dense, {vertices, width}, field(0));
    auto z = copy(x), dx = copy(x);
    host_edges e(a, width), de(a, width);
    fill_edges(e, [&](auto v, auto u, auto h) { return v == odd.row && u == odd.col && h == 1 ? NAN : 2.0; });
    fill_edges(de, [](auto...) { return 0.0; });
    message_plan plan(a, x, same, {.heads = width, .reduction = message_reduction::max});
    plan.forward(x, e, z);
    plan.backward(x, e, x, dx, de);
    const auto of_edge = [&](auto v, auto u, auto h) {
      const bool wins = u == (v == odd.row && h == 1 ? odd.col : first.at(v));
      return wins ? element(v, h) : 0;
    };
    CHECK(largest_error(de, of_edge) < 1e-15);
    CHECK(std::isnan(collect(z)[static_cast<std::size_t>(odd.row * width + 1)]));
  });
}

TEST_CASE("messages on tiles in parts, by several threads, and in far memory") {
  const serial_messages all[] = {{.heads = 3, .reduction = message_reduction::mean},
                                 {.heads = 3, .reduction = message_reduction::max}};
  const auto f =
      algebra::with_parameters<1>([](auto u, auto v, auto e, auto p) { return gated(u, v, e) * p[0] + u; });
  const auto store = new_far_store();
  for (const serial_messages& c : all) {
    const expected_messages expected = expected_of(f, c);
    for (const bool far : {false, true})
      for_each_mesh(std::array{1, 4, 6}, [&](const policy& p, mesh_shape shape) {
        on_threads(shape.size(), [&](const communicator& world) {
          const device_queue<host> q(far ? 1 : 3);
          if (far) use_far(q, {.store = store, .window = 16384});
          check_on(host_mesh(world, shape, q, 13), p, f, c, expected, row_exchange::automatic);
        });
      });
  }
}

TEST_CASE("e x_u is the product with an edge matrix, and has its gradients") {
  const auto graph = edges_of_messages();
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

TEST_CASE("gradients that are not wanted are neither computed nor sent, and others keep their bits") {
  const auto f = algebra::with_parameters<2>(attentive);
  const auto graph = edges_of_messages();
  for (const auto rows : {row_exchange::full, row_exchange::sparsity_aware})
    on_usual_meshes(std::array{1, 2, 3, 6, 8, 9, 16}, [&](const host_mesh& m, const policy& p) {
      const auto a = distribute(m, p.sparse, {vertices, vertices}, share(graph, m));
      const auto x = generate<double>(m, p.dense, {vertices, width}, field(0));
      const auto parameters = generate<replicated, double>(m, {2, width}, field(3));
      host_edges e(a, 3);
      fill_edges(e, edge_entry);
      message_plan plan(a, x, f, {.heads = 3, .rows = rows});
      check_wanted_gradients(plan, x, e, x, parameters);
    });
}

TEST_CASE("by rows, rows that are needed come in both directions, and sums for them go back") {
  const auto graph = edges_of_messages();
  for (const int ranks : {2, 3, 4, 6, 9, 16})
    with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const auto a = distribute(m, row_1d.sparse, {vertices, vertices}, share(graph, m));
      const auto x = generate<double>(m, row_1d.dense, {vertices, width}, field(0));
      const message_plan plan(a, x, bent, {.heads = 2, .rows = row_exchange::sparsity_aware});
      std::set<global_index> needed;
      std::set<std::pair<std::size_t, global_index>> coming;  // from whom, for which row
      for (const auto& e : graph) {
        const bool is_target = a.row_range().contains(e.row), is_source = a.row_range().contains(e.col);
        if (is_target && !is_source) needed.insert(e.col);
        if (is_source && !is_target)
          coming.insert({a.row_blocking().owner(partition::every_axis, e.row), e.col});
      }
      CHECK(plan.predicted_forward().words == std::ssize(needed) * width);
      CHECK(plan.predicted_backward(false).words == (std::ssize(needed) + std::ssize(coming)) * width);
      CHECK(plan.predicted_backward_part({.sources = false}).words == std::ssize(needed) * width);
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

TEST_CASE("messages take memory for rows and for indices of entries, never for entries times columns") {
  constexpr global_index n = 96, k = 32;
  std::vector<triplet<double>> complete;
  for (global_index i = 0; i < n * n; ++i) complete.push_back({i / n, i % n, 1});
  const auto f = algebra::with_parameters<2>(attentive);
  for (const auto how : {message_reduction::sum, message_reduction::max}) {
    const auto check = [&](const host_mesh& m) {
      const auto a = distribute(m, grid_2d.sparse, {n, n}, share(complete, m));
      const auto x = generate<double>(m, grid_2d.dense, {n, k}, field(0));
      const auto parameters = generate<replicated, double>(m, {2, k}, field(3));
      auto z = copy(x), dx = copy(x);
      auto dp = copy(parameters);
      host_edges e(a, 1), de(a, 1);
      fill_edges(e, edge_entry);
      fill_edges(de, edge_entry);
      const auto& meter = *m.queue().meter();
      const std::size_t held = meter.current();
      m.queue().meter()->restart_peak();
      message_plan plan(a, x, f, {.reduction = how});
      plan.forward(x, e, parameters, z);
      plan.backward(x, e, parameters, z, dx, de, dp);
      const std::size_t peak = meter.peak() - held, entries = a.local()->nonzeros,
                        indices = 4 * (4 * entries + 8 * n), rows = 12 * 8 * n * k;
      CHECK_MESSAGE(peak < rows + indices, peak, " bytes on ", to_string(m.shape()));
      if (m.size() == 1) CHECK(rows + indices < entries * k * 8 / 4);
      const std::size_t first = meter.current() - held;
      const message_plan other(a, x, f, {.reduction = how});
      CHECK(meter.current() - held - first + 2 * 4 * entries < first);  // they share inverses of the pattern
      const auto allocations = meter.allocations();
      plan.forward(x, e, parameters, z);
      plan.backward(x, e, parameters, z, dx, de, dp);
      CHECK(meter.allocations() == allocations);
    };
    on_mesh({1, 1, 1}, check);
    on_mesh({2, 3, 1}, check);
  }
}

TEST_CASE("what messages are not made for is refused") {
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    const auto a = distribute(m, row_1d.sparse, {5, 5}, std::vector<triplet<double>>{});
    const auto x = generate<double>(m, row_1d.dense, {5, width}, field(0));
    expect_error<shape_error>("4 heads do not divide a width of 6",
                              [&] { message_plan(a, x, gated, {.heads = 4}); });
  });
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
