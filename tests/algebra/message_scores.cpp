// SPDX-License-Identifier: Apache-2.0
// Scores of edges by functions of one's own, and the gradients that follow from these, on every policy and
// mesh; attention that is composed of them.
#include "partita/algebra/message_scores.hpp"

#include "partita/algebra/edge_softmax.hpp"
#include "partita/algebra/edge_spmm.hpp"
#include "partita/algebra/sddmm.hpp"
#include "support/serial_messages.hpp"

namespace test_message_scores {

using namespace test_support;
using partita::algebra::message_scores_options;
using partita::algebra::message_scores_plan;

constexpr global_index vertices = message_vertices, width = message_width;

constexpr auto attentive = [](auto u, auto v, auto e, auto p) {
  const auto x = u + v + e;
  using partita::base::select;
  return p[0] * select(x > 0, x, 0.2 * x);
};
constexpr auto biased = [](auto u, auto v, auto e) { return 0.6 * u * v + e / 3; };
constexpr auto bent = [](auto u, auto e) {
  using std::tanh;
  return tanh(u * e);
};

/// Forward and backward on one mesh, for the whole gradient of parameters and for each rank's part of it.
template <class F>
void check_on(const host_mesh& m, const policy& p, const F& f, const serial_messages& c,
              const expected_messages& expected, row_exchange rows) {
  constexpr bool learns = local::parameter_count<F>() > 0;
  const auto a = distribute(m, p.sparse, {vertices, vertices}, share(c.edges, m));
  const auto x = generate<double>(m, p.dense, {vertices, width}, field(0));
  const auto parameters = generate<replicated, double>(
      m, {static_cast<global_index>(local::parameter_count<F>()), c.parameter_columns}, field(3));
  const bool has_values = c.heads > 0;
  host_edges e(a, std::max<local_index>(c.heads, 1)), de(a, e.heads()), s(a, c.score_heads),
      ds(a, c.score_heads);
  fill_edges(e, edge_entry);
  fill_edges(ds, score_slope);
  message_scores_plan plan(a, x, f, {c.score_heads, e.heads(), rows});
  auto dx = copy(x);
  auto dp = copy(parameters);
  for (const bool part : {false, true}) {
    fill(dx, 1);
    fill(dp, part ? 0 : 1);
    fill_edges(s, [](auto...) { return -1.0; });
    fill_edges(de, [](auto...) { return 1.0; });
    m.ledger().clear();
    plan.forward(x, x, has_values ? &e : nullptr, s, &parameters);
    same(heard(m), plan.predicted_forward(), "forward");
    m.ledger().clear();
    if (part)
      plan.backward_part(x, x, has_values ? &e : nullptr, ds, &dx, &dx, has_values ? &de : nullptr,
                         &parameters, &dp);
    else
      plan.backward(x, x, has_values ? &e : nullptr, ds, dx, dx, has_values ? &de : nullptr, &parameters,
                    &dp);
    same(heard(m), plan.predicted_backward(has_values, learns && !part), "backward");
    std::vector<double> both = expected.dsources, learned = expected.dparameters;
    for (std::size_t i = 0; i < both.size(); ++i) both[i] += expected.dtargets[i] + 1;
    check_equals(dx, both, 1e-7, "dX");
    if (part) algebra::sum_parts(m, dp.values());
    for (double& slope : learned) slope += part ? 0 : 1;
    check_equals(dp, learned, 1e-7, "dP");
    const auto of_edge = [&](auto v, auto u, auto h) { return expected.dvalues.at({v, u, h}) + 1; };
    if (has_values) CHECK_MESSAGE(largest_error(de, of_edge) < 1e-7, "dE on mesh ", to_string(m.shape()));
    const auto score = [&](auto v, auto u, auto h) { return expected.scores.at({v, u, h}); };
    CHECK_MESSAGE(largest_error(s, score) < 1e-12, "S on mesh ", to_string(m.shape()));
  }
}

template <class F>
void check_everywhere(const F& f, const serial_messages& c) {
  const expected_messages expected = expected_of(f, c);
  for (const auto rows : {row_exchange::full, row_exchange::sparsity_aware})
    on_usual_meshes(std::array{1, 2, 3, 6, 8, 9},
                    [&](const host_mesh& m, const policy& p) { check_on(m, p, f, c, expected, rows); });
}

TEST_CASE("scores of a user's function, with gradients as by differences and words as predicted") {
  check_everywhere(algebra::with_parameters<1>(attentive), {.heads = 6, .score_heads = 2});
  check_everywhere(algebra::with_parameters<1>(attentive),
                   {.heads = 1, .parameter_columns = 1, .score_heads = 3});
  check_everywhere(biased, {.heads = 2, .score_heads = 2});
  check_everywhere(biased, {.heads = 0, .score_heads = 6});
  check_everywhere(bent, {.heads = 3, .score_heads = 1});
}

TEST_CASE("gradients of scores that are not wanted are neither computed nor sent") {
  const auto f = algebra::with_parameters<1>(attentive);
  const auto graph = edges_of_messages();
  on_usual_meshes(std::array{1, 2, 3, 6, 8, 9, 16}, [&](const host_mesh& m, const policy& p) {
    const auto a = distribute(m, p.sparse, {vertices, vertices}, share(graph, m));
    const auto x = generate<double>(m, p.dense, {vertices, width}, field(0));
    const auto parameters = generate<replicated, double>(m, {1, width}, field(3));
    host_edges e(a, 6), ds(a, 2);
    fill_edges(e, edge_entry);
    fill_edges(ds, score_slope);
    message_scores_plan plan(a, x, f, {.heads = 2, .edge_columns = 6});
    check_wanted_gradients(plan, x, e, ds, parameters);
  });
}

TEST_CASE("scores on tiles in parts, by several threads, and in far memory") {
  const auto f = algebra::with_parameters<1>(attentive);
  const serial_messages c{.heads = 6, .score_heads = 2};
  const expected_messages expected = expected_of(f, c);
  const auto store = new_far_store();
  for (const bool far : {false, true})
    for_each_mesh(std::array{1, 4, 6}, [&](const policy& p, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const device_queue<host> q(far ? 1 : 3);
        if (far) use_far(q, {.store = store, .window = 16384});
        check_on(host_mesh(world, shape, q, 13), p, f, c, expected, row_exchange::automatic);
      });
    });
}

TEST_CASE("x t is the sampled product; attention is a composition") {
  const auto graph = edges_of_messages();
  constexpr auto times = [](auto u, auto v, auto) { return u * v; };
  const auto attention_on = [&](const host_mesh& m, const policy& p) {
    const auto a = distribute(m, p.sparse, {vertices, vertices}, share(graph, m));
    const auto x = generate<double>(m, p.dense, {vertices, width}, field(0)),
               t = generate<double>(m, p.dense, {vertices, width}, field(2));
    host_edges s(a, 3), sampled(a, 3);
    message_scores_plan plan(a, x, times, {.heads = 3});
    edge_spmm_plan multiply(a, x, 3);
    sddmm_plan sample(multiply);
    plan.forward(x, t, nullptr, s);
    sample(t, x, sampled);
    for (std::size_t i = 0; i < s.values().size(); ++i)
      CHECK(std::abs(s.values()[i] - sampled.values()[i]) < 1e-12);
    CHECK(plan.predicted_forward() == sample.predicted());
    edge_softmax(s);
    auto z = copy(x);
    multiply(s, x, z);
    return collect(z);
  };
  std::vector<double> expected;
  on_usual_meshes(std::array{1, 4, 6, 9}, [&](const host_mesh& m, const policy& p) {
    const std::vector<double> z = attention_on(m, p);
    if (m.size() == 1) expected = z;
    CHECK(largest_difference(z, expected) < 1e-12);
  });
}

TEST_CASE("what scores are not made for is refused") {
  on_mesh({1, 2, 1}, [&](const host_mesh& m) {
    const auto a = distribute(m, feature_column.sparse, {5, 5}, std::vector<triplet<double>>{});
    const auto x = generate<double>(m, feature_column.dense, {5, width}, field(0));
    message_scores_plan plan(a, x, biased, {.heads = 2});
    host_edges s(a, interval{m.rank(), m.rank() + 1}), other(a, 3);
    expect_error<shape_error>("need values of all heads", [&] { plan.forward(x, x, nullptr, s); });
    expect_error<shape_error>("2 heads were given values of 3 heads",
                              [&] { plan.forward(x, x, nullptr, other); });
    expect_error<shape_error>("4 heads do not divide a width of 6",
                              [&] { message_scores_plan(a, x, biased, {.heads = 4}); });
    message_scores_plan learning(a, x, algebra::with_parameters<1>(attentive), {.heads = 2});
    host_edges all(a, 2);
    expect_error<shape_error>("messages with 1 parameters and a width of 6",
                              [&] { learning.forward(x, x, nullptr, all); });
  });
}

}  // namespace test_message_scores
