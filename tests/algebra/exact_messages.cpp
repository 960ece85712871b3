// SPDX-License-Identifier: Apache-2.0
// On a reproducible mesh messages, scores of edges, products with edge matrices, softmaxes, sums of edges and
// their gradients have the same bits everywhere, with the closed form's words.
#include "partita/algebra/exact_messages.hpp"

#include "partita/algebra/edge_rows.hpp"
#include "partita/algebra/edge_softmax.hpp"
#include "partita/algebra/edge_verbs.hpp"
#include "partita/algebra/exact_edge_products.hpp"
#include "partita/algebra/message_scores.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/comm/self.hpp"
#include "support/serial_messages.hpp"
#include "support/summing.hpp"

namespace test_exact_messages {

using namespace test_support;

constexpr global_index vertices = message_vertices, width = message_width;

constexpr auto attentive = [](auto u, auto v, auto e, auto p) {
  using std::exp;
  const auto x = 0.1 * u + v / (1 + exp(e - v));
  return p[0] * (x > 0 ? x : 0.2 * x) + u * u * e * p[1];
};

template <class T>
struct outcome_of_messages {
  std::vector<T> z, dsources, dtargets, dparameters;
  std::map<std::tuple<global_index, global_index, global_index>, T> values;
  bool operator==(const outcome_of_messages&) const = default;
};

/// The values that this rank has, and adds to `all`; equal ones where they are there.
template <class T>
bool same_values(const edge_matrix<T, host>& e, outcome_of_messages<T>& all, global_index first) {
  const auto& a = e.pattern();
  bool same = true;
  e.for_parts([&](std::size_t t, const auto& part) {
    const auto* const values = part.values_in(e.values().data(), e.heads());
    for (local_index i = 0; i < part.entries.rows; ++i)
      for (local_index k = part.entries.offsets[i]; k < part.entries.offsets[i + 1]; ++k)
        for (local_index h = 0; h < e.heads(); ++h) {
          const std::tuple at{a.row_range().begin + part.first_row + i,
                              a.tile_columns(t).begin + part.entries.columns[k], first + h};
          const T value = values[k * e.heads() + h];
          same = same && all.values.try_emplace(at, value).first->second == value;
        }
  });
  return same;
}

template <class T>
struct run {
  const mesh<host>& m;
  const policy& p;
  sparse<T, dynamic_layout, host> a;
  dense<T, dynamic_layout, host> x, y, dz;
  dense<T, replicated, host> parameters, dp;
  edge_matrix<T, host> e, de;

  run(const mesh<host>& on, const policy& named)
      : m(on),
        p(named),
        a(distribute(m, p.sparse, {vertices, vertices}, entries())),
        x(generate<T>(m, p.dense, {vertices, width}, field(0))),
        y(generate<T>(m, p.dense, {vertices, width}, field(2))),
        dz(generate<T>(m, p.dense, {vertices, width}, field(1))),
        parameters(generate<replicated, T>(m, {2, 3}, field(3))),
        dp(copy(parameters)),
        e(a, 3),
        de(a, 3) {
    set(e, [](auto v, auto u, auto h) { return edge_entry(v, u, h); });
    set(de, [](auto...) { return 0.5; });
  }
  std::vector<triplet<T>> entries() const {
    std::vector<triplet<T>> all;
    for (const auto& one : share(edges_of_messages(), m)) all.push_back({one.row, one.col, T(1)});
    return all;
  }
  static void set(edge_matrix<T, host>& to, auto value) {
    const auto& of = to.pattern();
    to.for_parts([&](std::size_t t, const auto& part) {
      auto* const values = part.values_in(to.values().data(), to.heads());
      for (local_index i = 0; i < part.entries.rows; ++i)
        for (local_index k = part.entries.offsets[i]; k < part.entries.offsets[i + 1]; ++k)
          for (local_index h = 0; h < to.heads(); ++h)
            values[k * to.heads() + h] =
                static_cast<T>(value(of.row_range().begin + part.first_row + i,
                                     of.tile_columns(t).begin + part.entries.columns[k], h));
    });
  }

  /// What a sum, mean, maximum or the scores (null) come to; false if values of edges differ from `known`.
  bool operator()(const message_reduction* how, outcome_of_messages<T>& known) {
    const auto f = algebra::with_parameters<2>(attentive);
    auto z = copy(x), dx = copy(x), dy = copy(y);
    outcome_of_messages<T> now;
    bool same_bits = true;
    if (how != nullptr) {
      algebra::message_plan plan(a, x, f, {.heads = 3, .reduction = *how});
      m.ledger().clear();
      plan.forward(x, y, &e, z, &parameters);
      same(heard(m), plan.predicted_forward(), "forward");
      m.ledger().clear();
      plan.backward(x, y, &e, dz, dx, dy, &de, &parameters, &dp);
      same(heard(m), plan.predicted_backward(), "backward");
      if (m.reproducible() && *how == message_reduction::sum)
        check_wanted_gradients(plan, x, e, dz, parameters);
      now.z = collect(z);
    } else {
      algebra::message_scores_plan plan(a, x, f, {.heads = 2, .edge_columns = 3});
      edge_matrix<T, host> s(a, 2), ds(a, 2);
      set(ds, score_slope);
      m.ledger().clear();
      plan.forward(x, y, &e, s, &parameters);
      same(heard(m), plan.predicted_forward(), "forward");
      m.ledger().clear();
      plan.backward(x, y, &e, ds, dx, dy, &de, &parameters, &dp);
      same(heard(m), plan.predicted_backward(), "backward");
      same_bits = same_values(s, known, 100);
    }
    same_bits = same_values(de, known, 0) && same_bits;
    now.dsources = collect(dx);
    now.dtargets = collect(dy);
    now.dparameters = collect(dp);
    return is_as(known, std::move(now), same_bits);
  }
  /// Likewise of verbs of edge matrices.
  bool operator()(outcome_of_messages<T>& known) {
    outcome_of_messages<T> now;
    const auto heard_as = [&](const char* what, const traffic& predicted, auto&& verb) {
      m.ledger().clear();
      verb();
      same(heard(m), predicted, what);
    };
    edge_spmm_plan<T, host> multiply(a, x, 3);
    algebra::transposed_edge_spmm_plan<T, host> transposed(multiply);
    sddmm_plan<T, host> sample(multiply);
    algebra::edge_softmax_plan<T, host> softmax(a, 3);
    auto z = copy(x), dx = copy(x);
    heard_as("a product", multiply.predicted(), [&] { multiply(e, x, z); });
    heard_as("its transpose", transposed.predicted(), [&] { transposed(e, dz, dx); });
    heard_as("a sampled product", sample.predicted(), [&] { sample(dz, x, de, T(0.5)); });
    bool same_bits = same_values(de, known, 0);
    heard_as("a softmax", softmax.predicted_forward(), [&] { softmax.forward(e); });
    heard_as("its gradient", softmax.predicted_backward(), [&] { softmax.backward(e, de); });
    same_bits = same_values(e, known, 100) && same_bits;
    same_bits = same_values(de, known, 200) && same_bits;

    const layout l = m.shape().col > 1 ? p.dense : vertex_rows;
    dense<T, dynamic_layout, host> sums(m, l, {vertices, 3});
    for (const auto end : {algebra::edge_end::target, algebra::edge_end::source}) {
      algebra::edge_scatter_plan<T, host> scatter(a, end, sums);
      heard_as("sums of edges", scatter.predicted(), [&] { scatter(de, sums); });
      for (const T s : collect(sums)) now.dtargets.push_back(s);
    }
    dense<T, replicated, host> dw(m, {3, 3}), db(m, {1, 3});
    heard_as("a weight's gradient", algebra::predicted_part_of_edges(a, 9),
             [&] { algebra::weight_gradient_part(e, de, dw); });
    heard_as("a bias's gradient", algebra::predicted_part_of_edges(a, 3),
             [&] { algebra::column_sums_part(de, db); });
    now.z = collect(z);
    now.dsources = collect(dx);
    now.dparameters = collect(dw);
    for (const T s : collect(db)) now.dparameters.push_back(s);
    return is_as(known, std::move(now), same_bits);
  }
  static bool is_as(outcome_of_messages<T>& known, outcome_of_messages<T> now, bool same_bits) {
    if (known.dsources.empty()) {
      now.values = std::move(known.values);
      known = std::move(now);
      return true;
    }
    now.values = known.values;
    return same_bits && now == known;
  }
};

template <class T, class... How>
void expect_one_result(How... how) {
  outcome_of_messages<T> fast, expected;
  run<T>(mesh<host>(self::world(), {1, 1, 1}), row_1d)(how..., fast);
  run<T>(mesh<host>(self::world(), {1, 1, 1}, summing(summation::reproducible, 1)), row_1d)(how..., expected);
  const double near = std::is_same_v<T, float> ? 1e-4 : 1e-11;
  const auto close = [&](const std::vector<T>& left, const std::vector<T>& right) {
    CHECK(largest_difference(std::vector<double>(left.begin(), left.end()),
                             std::vector<double>(right.begin(), right.end())) < near);
  };
  close(fast.z, expected.z);
  close(fast.dsources, expected.dsources);
  close(fast.dtargets, expected.dtargets);
  close(fast.dparameters, expected.dparameters);
  for (const auto& [at, value] : fast.values)
    CHECK(std::abs(static_cast<double>(value - expected.values.at(at))) < near);
  on_usual_meshes(std::array{2, 3, 6, 8, 9, 16}, [&](const host_mesh& plain, const policy& p) {
    const mesh<host> m(plain.world(), plain.shape(),
                       summing(summation::reproducible, 1 + plain.shape().row % 2), 17);
    outcome_of_messages<T> of_rank = expected;
    CHECK_MESSAGE(run<T>(m, p)(how..., of_rank), std::string(p.name), " on ", to_string(m.shape()));
  });
}

TEST_CASE("sums, means and maxima of messages, and their gradients, have the same bits everywhere") {
  constexpr auto sum = message_reduction::sum, mean = message_reduction::mean, max = message_reduction::max;
  expect_one_result<double>(&sum);
  expect_one_result<float>(&mean);
  expect_one_result<double>(&max);
}

TEST_CASE("scores of edges, and their gradients, have the same bits everywhere") {
  constexpr const message_reduction* scores = nullptr;
  expect_one_result<double>(scores);
  expect_one_result<float>(scores);
}

TEST_CASE("products with edge matrices, softmaxes, sums of edges and of their products: the same bits") {
  expect_one_result<double>();
}

}  // namespace test_exact_messages
