// SPDX-License-Identifier: Apache-2.0
// Attention under every policy, both ways to its gradients, against loops, differences and one rank.

#include "partita/algebra/loss.hpp"
#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/nn/models.hpp"
#include "partita/train/summary.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_attention {

using namespace partita;
using algebra::attention, algebra::attention_shape;
using namespace test_support;

using matrix = dense<double, vertex_rows, host>;
using entries = std::vector<triplet<double>>;

constexpr global_index n = 23;

double score_entry(global_index v, global_index h) {
  return 2 * std::cos(static_cast<double>(5 * v + 3 * h));
}
double gradient_entry(global_index v, global_index j) { return element(j, v + 5); }

/// The attention of a pattern under a policy.
template <class T = double>
attention<T, host> attention_of(const mesh<host>& m, const policy& p, global_index vertices,
                                const entries& pattern, const attention_shape& shape,
                                algebra::coefficient_gradient form,
                                row_exchange rows = row_exchange::automatic) {
  std::vector<triplet<T>> mine;
  for (const auto& e : share(pattern, m)) mine.push_back({e.row, e.col, static_cast<T>(e.value)});
  return {distribute(m, p, {vertices, vertices}, mine), shape, {stationary::automatic, rows}, form};
}

/// y, dx and dscores of one forward and backward, each whole; checks what they receive.
template <class T>
std::array<std::vector<double>, 3> run(const mesh<host>& m, attention<T, host>& layer, local_index heads,
                                       const dropout_mask& mask) {
  const matrix_shape size{n, layer.features().size()}, of_scores{n, 2 * heads};
  const auto x = generate<vertex_rows, T>(m, size, field(0)),
             dy = generate<vertex_rows, T>(m, size, gradient_entry),
             scores = generate<vertex_rows, T>(m, of_scores, score_entry);
  dense<T, vertex_rows, host> y(m, size), dx(m, size), dscores(m, of_scores);
  m.ledger().clear();
  layer.forward(x, scores, y, mask);
  layer.backward(x, dy, dx, dscores);
  same(heard(m), layer.predicted(), "one forward and backward");
  const auto doubles = [](const std::vector<T>& v) { return std::vector<double>(v.begin(), v.end()); };
  return {doubles(collect(y)), doubles(collect(dx)), doubles(collect(dscores))};
}

/// The same forward by the definition, without dropout.
std::vector<double> by_definition(const entries& pattern, const attention_shape& shape) {
  const global_index width = shape.columns();
  const auto alpha = [&](global_index v, global_index u, local_index h) {
    const auto power = [&](global_index from) {
      const double score = score_entry(from, h) + score_entry(v, shape.heads + h);
      return std::exp(score > 0 ? score : shape.slope * score);
    };
    double total = 0;
    for (const auto& e : pattern)
      if (e.row == v) total += power(e.col);
    return power(u) / total;
  };
  std::vector<double> z = whole({n, width}, field(0));
  for (int k = 0; k < shape.hops; ++k) {
    std::vector<double> next(z.size(), 0);
    for (const auto& e : pattern)
      for (local_index h = 0; h < shape.heads; ++h) {
        const double weight = alpha(e.row, e.col, h) / (shape.averaged ? shape.heads : 1);
        const global_index first = shape.averaged ? 0 : h * shape.width;
        for (global_index j = first; j < first + shape.width; ++j)
          next[static_cast<std::size_t>(e.row * width + j)] +=
              weight * z[static_cast<std::size_t>(e.col * width + j)];
      }
    z = std::move(next);
  }
  return z;
}

mesh<host> alone() { return mesh<host>(self::world(), {1, 1, 1}); }

TEST_CASE("attention is that of one rank on every policy, by rows and by edges, with words as predicted") {
  const entries pattern = sparse_entries({n, n}, 4);
  const attention_shape shapes[] = {{.heads = 3, .width = 2},
                                    {.heads = 1, .width = 5},
                                    {.heads = 2, .width = 3, .averaged = true},
                                    {.heads = 2, .width = 3, .averaged = true, .hops = 3},
                                    {.heads = 2, .width = 2, .hops = 2}};
  for (const attention_shape& shape : shapes) {
    const auto one = alone();
    auto serial = attention_of(one, row_1d, n, pattern, shape, algebra::coefficient_gradient::automatic);
    CHECK(largest_difference(run(one, serial, shape.heads, {})[0], by_definition(pattern, shape)) < 1e-12);
    const dropout_mask mask{0.4, {1, 2, 3}};
    const auto expected = run(one, serial, shape.heads, mask);
    const auto check = [&](auto policy, mesh_shape mesh_size, std::size_t tile_entries) {
      on_threads(mesh_size.size(), [&](const communicator& world) {
        const mesh<host> m(world, mesh_size, device_queue<host>(), tile_entries);
        for (algebra::coefficient_gradient form :
             {algebra::coefficient_gradient::rows, algebra::coefficient_gradient::edges,
              algebra::coefficient_gradient::owners}) {
          if (shape.hops > 1 && form == algebra::coefficient_gradient::rows) continue;
          for (row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware}) {
            auto layer = attention_of(m, policy, n, pattern, shape, form, rows);
            CHECK(layer.form() == form);
            const auto found = run(m, layer, shape.heads, mask);
            for (std::size_t i = 0; i < found.size(); ++i)
              CHECK_MESSAGE(largest_difference(found[i], expected[i]) < 1e-12, std::string(policy.name),
                            " on ", to_string(mesh_size), ", part ", i);
          }
        }
      });
    };
    for_each_usual_mesh(std::array{1, 4, 6}, [&](auto policy, mesh_shape mesh_size) {
      for (const std::size_t most : {base::max_tile_entries, std::size_t{11}})
        if (!sanitized || most == 11) check(policy, mesh_size, most);
    });
  }
}

TEST_CASE_TEMPLATE(
    "on a reproducible mesh attention has the same bits everywhere, and the values of a fast one", T, float,
    double) {
  const attention_shape shapes[] = {{.heads = 3, .width = 5},
                                    {.heads = 1, .width = 35},
                                    {.heads = 2, .width = 3, .averaged = true},
                                    {.heads = 2, .width = 3, .averaged = true, .hops = 4},
                                    {.heads = 2, .width = 2, .hops = 2}};
  std::uint64_t sparsity = 2;
  for (const attention_shape& shape : shapes) {
    const entries pattern = sparse_entries({n, n}, ++sparsity);
    const dropout_mask mask{sparsity % 2 == 0 ? 0.4 : 0.0, {1, 2, 3}};
    const auto on = [&](const communicator& world, const policy& p, mesh_shape ranks, summation sums) {
      const mesh<host> m(world, ranks, summing(sums, 1 + ranks.row % 3), 50);
      auto layer = attention_of<T>(m, p, n, pattern, shape, algebra::coefficient_gradient::automatic);
      CHECK(run(m, layer, shape.heads, {0.7, {3, 2, 1}}) != run(m, layer, shape.heads, mask));
      return run(m, layer, shape.heads, mask);
    };
    const auto expected = on(self::world(), row_1d, {1, 1, 1}, summation::reproducible);
    const auto fast = on(self::world(), row_1d, {1, 1, 1}, summation::fast);
    for (std::size_t i = 0; i < fast.size(); ++i)
      CHECK(largest_difference(expected[i], fast[i]) < 1000 * std::numeric_limits<T>::epsilon());
    on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9, 12, 16, 27},
                    [&](const host_mesh& m, const partita::policy& policy) {
                      CHECK_MESSAGE((on(m.world(), policy, m.shape(), summation::reproducible) == expected),
                                    std::string(policy.name), " on ", to_string(m.shape()));
                    });
  }
}

TEST_CASE("attention on a graph without its transpose is refused") {
  expect_error<error>(
      {2, 1, 1}, "attention: a matrix of 23 x 23 has no entries of its own", [](const host_mesh& m) {
        const auto a = distribute(m, row_1d, {n, n}, share(sparse_entries({n, n}), m), symmetry::one_way);
        attention<double, host>(a, attention_shape{.heads = 1, .width = 3}, {},
                                algebra::coefficient_gradient::automatic);
      });
}

TEST_CASE("coefficients and their gradients take the way on which the busiest rank has less to do") {
  const attention_shape shape{.heads = 1, .width = 8};
  int by_rows = 0, by_edges = 0, by_owners = 0;
  for (std::uint64_t sparsity : {1, 20}) {
    const entries pattern = sparse_entries({n, n}, sparsity);
    on_each_mesh(std::array{2, 4, 9}, [&](const host_mesh& m, const partita::policy& policy) {
      struct cost {
        algebra::coefficient_gradient form;
        global_index words, with_coefficients;
      };
      const auto cost_of = [&](algebra::coefficient_gradient form) {
        const auto layer = attention_of(m, policy, n, pattern, shape, form);
        const global_index words = layer.predicted().words;
        return cost{layer.form(), nn::summarize(m.world(), words).max_rank,
                    nn::summarize(m.world(), words + layer.coefficients()).max_rank};
      };
      const cost chosen = cost_of(algebra::coefficient_gradient::automatic),
                 owners = cost_of(algebra::coefficient_gradient::owners),
                 rows = cost_of(algebra::coefficient_gradient::rows),
                 edges = cost_of(algebra::coefficient_gradient::edges);
      const cost& in_layout = edges.words <= rows.words ? edges : rows;
      const bool shares =
          m.shape().col > 1 && (policy.name == feature_column.name || policy.name == feature_row.name);
      const bool expects_owners = shares && owners.with_coefficients < in_layout.with_coefficients;
      CHECK(chosen.form == (expects_owners ? owners : in_layout).form);
      CHECK(chosen.words == (expects_owners ? owners : in_layout).words);
      if (m.rank() != 0) return;
      ++(chosen.form == algebra::coefficient_gradient::rows    ? by_rows
         : chosen.form == algebra::coefficient_gradient::edges ? by_edges
                                                               : by_owners);
    });
  }
  CHECK(by_rows > 0);
  CHECK(by_edges > 0);
  CHECK(by_owners > 0);
}

TEST_CASE("arithmetic gives the words and coefficients of every form, and chooses as if all had been built") {
  using algebra::coefficient_gradient;
  constexpr std::array ways{coefficient_gradient::rows, coefficient_gradient::edges};
  const attention_shape shapes[] = {{.heads = 1, .width = 8},
                                    {.heads = 3, .width = 2},
                                    {.heads = 2, .width = 3, .averaged = true},
                                    {.heads = 2, .width = 3, .averaged = true, .hops = 3},
                                    {.heads = 2, .width = 2, .hops = 2}};
  const auto check = [&](const host_mesh& m, const policy& p, const entries& pattern,
                         const attention_shape& shape, row_exchange exchange) {
    const auto a = distribute(m, p, {n, n}, share(pattern, m));
    const transfer::in_edges<double, host> rows(a);
    const spmm_options options{stationary::automatic, exchange};
    const auto busiest = [&](global_index mine) { return m.world().all_reduce(mine, reduction::max); };
    struct choice {
      coefficient_gradient gradient;
      global_index work;
    };
    const auto best_built = [&](const algebra::detail::attention_cost& cost, auto build) {
      choice best{};
      global_index least = std::numeric_limits<global_index>::max();
      for (const coefficient_gradient way : {ways[1], ways[0]}) {
        if (shape.hops > 1 && way == coefficient_gradient::rows) continue;
        const auto built = build(way);
        const global_index words = built.predicted().words;
        CHECK(cost.words(way) == words);
        CHECK(cost.coefficients == built.coefficients());
        if (busiest(words) >= least) continue;
        least = busiest(words);
        best = {way, busiest(words + built.coefficients())};
      }
      CHECK(algebra::detail::least_gradient(m, cost, shape.hops) == best.gradient);
      return best;
    };
    const choice tiled =
        best_built(algebra::detail::cost_in_layout(a, rows, shape, options), [&](coefficient_gradient way) {
          return algebra::detail::tiled_attention<double, host>(a, rows, shape, options, way);
        });
    const choice owners =
        best_built(algebra::detail::cost_of_owners(rows, shape, options), [&](coefficient_gradient way) {
          return algebra::detail::owners_attention<double, host>(a, rows, shape, options, way);
        });
    const attention<double, host> chosen(a, shape, options);
    const bool shares = algebra::detail::shares_heads(a, shape, chosen.features());
    CHECK(chosen.form() ==
          (shares && owners.work < tiled.work ? coefficient_gradient::owners : tiled.gradient));
  };
  for (const std::uint64_t sparsity : {1, 20}) {
    if (sanitized && sparsity == 1) continue;
    const entries pattern = sparse_entries({n, n}, sparsity);
    on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const policy& p) {
      for (const attention_shape& shape : shapes)
        for (const row_exchange exchange :
             {row_exchange::automatic, row_exchange::full, row_exchange::sparsity_aware})
          check(m, p, pattern, shape, exchange);
    });
  }
}

TEST_CASE("owners compute every coefficient once a pass, and receive what they receive under row_1d") {
  const entries pattern = sparse_entries({n, n}, 4);
  const attention_shape shapes[] = {{.heads = 1, .width = 5},
                                    {.heads = 2, .width = 3, .averaged = true, .hops = 3}};
  for (const attention_shape& shape : shapes)
    for (const int ranks : {2, 3, 8})
      on_threads(ranks, [&](const communicator& world) {
        const auto owners = attention_of(mesh<host>(world, {1, ranks, 1}), feature_column, n, pattern, shape,
                                         algebra::coefficient_gradient::owners),
                   rows = attention_of(mesh<host>(world, {ranks, 1, 1}), row_1d, n, pattern, shape,
                                       algebra::coefficient_gradient::automatic);
        CHECK(owners.predicted() == rows.predicted());
        CHECK(nn::summarize(world, owners.coefficients()).total ==
              2 * static_cast<global_index>(pattern.size()) * shape.heads);
      });
}

TEST_CASE("under feature_column a head that lies on one rank sends the value of an edge once") {
  constexpr int ranks = 4, heads = 8;
  const entries pattern = sparse_entries({n, n}, 3);
  const auto nonzeros = static_cast<global_index>(pattern.size());
  with_mesh({1, ranks, 1}, [&](const host_mesh& m) {
    const attention_shape shape{.heads = heads, .width = 2};
    auto layer = attention_of(m, feature_column, n, pattern, shape, algebra::coefficient_gradient::edges);
    (void)run(m, layer, heads, {});
    const blocking vertices = blocking::even(n, m.shape(), nesting::rows);
    const transfer::layout_change<double, host> change(m, vertices, vertices, layer.features(), vertex_rows,
                                                       feature_column.dense);
    const auto total = [&](global_index mine) { return nn::summarize(m.world(), mine).total; };
    const global_index scalars = (ranks - 1) * n * (2 * heads + heads);
    CHECK(total(layer.predicted().words - 2 * change.predicted().words) ==
          scalars + nonzeros * heads * (ranks - 1) / ranks);
  });
}

TEST_CASE("on a block of sampled neighbours one rank has all rows, and owners are not another form") {
  const auto one = alone();
  const attention_shape shape{.heads = 2, .width = 3};
  entries pattern;
  for (const auto& e : sparse_entries({n, n}, 4))
    if (e.row < n - 5) pattern.push_back(e);
  const attention<double, host> block(distribute(one, row_1d, {n - 5, n}, pattern), shape, {},
                                      algebra::coefficient_gradient::owners),
      graph(distribute(one, row_1d, {n, n}, pattern), shape, {}, algebra::coefficient_gradient::owners);
  CHECK(block.form() != algebra::coefficient_gradient::owners);
  CHECK(graph.form() == algebra::coefficient_gradient::owners);
}

TEST_CASE("rows are gathered for one hop only") {
  const entries pattern = sparse_entries({n, n}, 4);
  expect_error<error>(2, "several hops cannot gather rows", [&](const communicator& world) {
    (void)attention_of(mesh<host>(world, {2, 1, 1}), row_1d, n, pattern, {.hops = 2},
                       algebra::coefficient_gradient::rows);
  });
}

TEST_CASE("gradients of a decoupled gat on a directed weighted graph agree with finite differences") {
  const entries graph = sparse_entries({n, n}, 4);
  const auto every_gradient = [&](const mesh<host>& m, auto policy, bool differences) {
    auto loops = share(graph, m);
    for (global_index v = m.rank(); v < n; v += m.size()) loops.push_back({v, v, 1});
    auto model = nn::decoupled_gat(distribute(m, policy, {n, n}, loops), {5, 4, 3}, 2, 3,
                                   {.seed = 11, .dropout = 0.3});
    const matrix frame(m, {n, 3});
    const algebra::vertex_labels<host> labels(m, frame.row_blocking(),
                                              [](global_index v) { return v % 4 == 0 ? -1 : v % 3; });
    const auto input = generate<vertex_rows, double>(m, {n, 5}, field(0));
    matrix g(m, {n, 3});
    const nn::pass training{.training = true, .epoch = 3};
    const auto loss = [&] { return algebra::cross_entropy(model.forward(input, training), labels, g); };
    auto& set = model.parameters();
    m.ledger().clear();
    (void)loss();
    model.backward(g);
    comm::collective scalar;
    scalar.kind = operation::all_reduce;
    scalar.count = 1;
    same(heard(m), model.predicted() + received(scalar, m.rank(), m.size()), "a training step");
    const std::vector<double> gradient = collect(set.gradients());
    const std::span<double> values_of_set = set.values().values();
    const std::size_t vectors = 5 * 4 + 4 + 4 * 3 + 3;  // after two dense layers
    for (std::size_t i = 0; differences && i < gradient.size(); i += i < vectors ? 5 : 1) {
      const double before = values_of_set[i], h = 1e-6;
      values_of_set[i] = before + h;
      const double above = loss();
      values_of_set[i] = before - h;
      const double below = loss();
      values_of_set[i] = before;
      CHECK((above - below) / (2 * h) == doctest::Approx(gradient[i]).epsilon(1e-5).scale(0.1));
      if (i >= vectors) CHECK(gradient[i] != 0);
    }
    return gradient;
  };
  const std::vector<double> expected = every_gradient(alone(), row_1d, true);
  on_each_mesh(std::array{3, 4, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto found = every_gradient(m, policy, m.world().size() == 4);
    CHECK_MESSAGE(largest_difference(found, expected) < 1e-12, std::string(policy.name), " on ",
                  to_string(m.shape()));
  });
}

}  // namespace test_attention
