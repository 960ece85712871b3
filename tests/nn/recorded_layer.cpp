// SPDX-License-Identifier: Apache-2.0
// Models written forward only against the layers with backwards of their own.
#include "partita/nn/recorded_layer.hpp"

#include "partita/algebra/loss.hpp"
#include "partita/algebra/reproducible.hpp"
#include "partita/comm/threads.hpp"
#include "partita/nn/models.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/layers.hpp"

namespace test_recorded_layer {

using namespace partita;
using namespace test_support;

using host_matrix = partita::sparse<double, dynamic_layout, host>;
using host_model = nn::model<double, host>;
constexpr global_index n = 11, f = 5, hidden = 4, classes = 3;
const std::vector<global_index> widths{f, hidden, classes};

/// relu(A H W + b) in so many columns, then dropout.
host_model gcn(const host_matrix& a, const nn::model_options& options) {
  const host_builder b(a, options);
  return {b, nn::chain<nn::relu>(b, widths, [&](std::size_t, auto in, auto out, const auto& with) {
            return nn::recorded(with, in, [&](auto& make, auto h) {
              const auto w = make.glorot("W", {in, out}), bias = make.filled("b", {1, out});
              return add_row(bias, in < out || in == f ? gemm(spmm(a, h), w) : spmm(a, gemm(h, w)));
            });
          })};
}
host_model sage(const host_matrix& a, const nn::model_options& options) {
  const host_builder b(a, options);
  return {b, nn::chain<nn::relu>(b, widths, [&](std::size_t l, auto in, auto out, const auto& with) {
            return nn::recorded(with, in, [&](auto& make, auto h) {
              const auto left = make.glorot("Wl", {in, out});
              const auto bias = make.filled("b", {1, out});
              const auto right = make.glorot("Wr", {in, out});
              return add_row(bias,
                             (l == 0 ? gemm(spmm(a, h), left) : spmm(a, gemm(h, left))) + gemm(h, right));
            });
          })};
}
host_model appnp(const host_matrix& a, const nn::model_options& options) {
  const host_builder b(a, options);
  return {b, nn::recorded(b, f, [&](auto& make, auto h) {
            const auto first = make.glorot("W", {f, hidden}), of_first = make.filled("b", {1, hidden});
            const auto last = make.glorot("W", {hidden, classes}), of_last = make.filled("b", {1, classes});
            const auto x = relu(add_row(of_first, gemm(h, first)));
            const auto z_0 = add_row(of_last, gemm(x, last));
            auto z = z_0;
            for (int k = 0; k < 3; ++k) z = 0.9 * spmm(a, z) + 0.1 * z_0;
            return z;
          })};
}

struct leaky {
  template <class X>
  constexpr X operator()(const X& s) const {
    return s > X(0) ? s : X(0.2) * s;
  }
};
/// a_src . x_u + a_dst . x_v.
struct dots_at_ends {
  static constexpr int parameters = 2;
  template <class X>
  constexpr X operator()(const X& u, const X& v, const X&, const auto& p) const {
    return p[0] * u + p[1] * v;
  }
};
/// Two heads side by side, then one; elu in between.
host_model gat(const host_matrix& a, const nn::model_options& options) {
  const host_builder b(a, options);
  return {b, nn::chain<nn::elu>(
                 b, {f, 2 * hidden, classes}, [&](std::size_t l, auto in, auto out, const auto& with) {
                   return nn::recorded(with, in, [&](auto& make, auto h) {
                     const local_index heads = l == 0 ? 2 : 1;
                     const auto w = make.glorot("W", {in, out}), vectors = make.filled("a", {2, out}),
                                bias = make.filled("b", {1, out});
                     const auto x = redistribute(gemm(h, w), a.operand_layout().value_or(vertex_rows));
                     const auto s = message_scores(a, x, {.targets = x, .parameters = vectors},
                                                   dots_at_ends{}, {.heads = heads});
                     const auto alpha = make.dropout(edge_softmax(transform(s, leaky{})), options.dropout);
                     return add_row(bias, redistribute(spmm(alpha, x), vertex_rows));
                   });
                 })};
}
/// With the numbers of other.
host_model starting_as(host_model model, host_model&& other) {
  const auto from = other.parameters().values().values();
  std::ranges::copy(from, model.parameters().values().values().begin());
  return model;
}

/// The losses of some epochs; what each receives is what is predicted.
std::vector<double> losses(host_model model, const rows_matrix& x,
                           const algebra::vertex_labels<host>& labels) {
  std::vector<double> found;
  const auto& m = x.mesh();
  rows_matrix dz(m, x.row_blocking(), blocking::even(model.width(), m.shape(), nesting::cols));
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    m.ledger().clear();
    const auto& z = model.forward({x, true}, {.training = true, .epoch = epoch});
    const traffic forward = heard(m);
    found.push_back(algebra::cross_entropy(z, labels, dz));
    m.ledger().clear();
    model.backward(dz);
    if (epoch > 0) CHECK(same(forward + heard(m), model.predicted(), "an epoch"));
    zip(model.parameters().values(), model.parameters().gradients(), model.parameters().values(),
        [](double w, double d) { return w - 0.5 * d; });
  }
  return found;
}

void check_same(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(std::abs(a[k] - b[k]) < 1e-12);
}

TEST_CASE("gcn, sage and appnp, forward only, under every policy") {
  for (const int ranks : {1, 2, 3, 4, 6})
    for (const policy& p : named_policies)
      on_threads(ranks, [&](const communicator& world) {
        const mesh<host> m(world, default_mesh(p, ranks));
        std::vector<triplet<double>> mine;
        if (world.rank() == 0)
          for (global_index v = 0; v < n; ++v)
            for (global_index k = 1; k < 4; ++k) mine.push_back({v, (v * k + 3) % n, 0.2 + 0.1 * double(k)});
        const host_matrix a = distribute(m, p, {n, n}, mine);
        const auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
        const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % 4 - 1; });
        const nn::model_options options{.seed = 3, .dropout = 0.25}, plain{.seed = 3};
        check_same(losses(gcn(a, plain), x, labels),
                   losses(nn::convolutions<nn::gcn_conv>(a, widths, plain), x, labels));
        check_same(losses(gcn(a, options), x, labels),
                   losses(nn::convolutions<nn::gcn_conv>(a, widths, options), x, labels));
        check_same(losses(sage(a, plain), x, labels),
                   losses(nn::convolutions<nn::sage_conv>(a, widths, plain), x, labels));
        check_same(losses(appnp(a, plain), x, labels),
                   losses(nn::appnp(a, widths, 3, 0.1, plain), x, labels));
        CHECK(gcn(a, plain).predicted() == nn::convolutions<nn::gcn_conv>(a, widths, plain).predicted());
        CHECK(sage(a, plain).predicted() == nn::convolutions<nn::sage_conv>(a, widths, plain).predicted());
      });
}

TEST_CASE("gat as a composition of verbs on edges, under every policy") {
  for (const int ranks : {1, 2, 3, 6, 9})
    for (const policy& p : named_policies)
      on_threads(ranks, [&](const communicator& world) {
        const mesh<host> m(world, default_mesh(p, ranks));
        std::vector<triplet<double>> mine;
        if (world.rank() == 0)
          for (global_index v = 0; v < n; ++v)
            for (global_index k = 1; k < 4; ++k) mine.push_back({v, (v * k + 3) % n, 1});
        const host_matrix a = distribute(m, p, {n, n}, mine);
        const auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
        const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % 4 - 1; });
        for (const double rate : {0.0, 0.25}) {
          const nn::model_options options{.seed = 3, .dropout = rate};
          const auto with_backward = [&] {
            return nn::gat(nn::layer_matrices<double, host>(a), widths, 2, 1, host_builder(a, options));
          };
          check_same(losses(starting_as(gat(a, options), with_backward()), x, labels),
                     losses(with_backward(), x, labels));
        }
      });
}

TEST_CASE(
    "a recorded layer in the middle of a model has the gradient of its input, and its sends are predicted") {
  on_threads(3, [](const communicator& world) {
    const mesh<host> m(world, {3, 1, 1});
    std::vector<triplet<double>> mine;
    if (world.rank() == 0)
      for (global_index v = 0; v < n; ++v) mine.push_back({v, (v * 3 + 1) % n, 1.5});
    const host_matrix a = distribute(m, row_1d, {n, n}, mine);
    auto h = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    const host_builder b = in_the_middle(h);
    check_gradients(b,
                    nn::recorded(b, f,
                                 [&](auto& make, auto x) {
                                   const auto w = make.glorot("W", {f, f});
                                   return gemm(spmm(a, relu(gemm(x, w))), transposed(w)) + x;
                                 }),
                    h);
  });
}

TEST_CASE("recomputation gives the same losses in less memory, and later epochs take no memory") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      constexpr global_index vertices = 60;
      std::vector<triplet<double>> mine;
      if (world.rank() == 0)
        for (global_index v = 0; v < vertices; ++v) mine.push_back({v, (v * 7 + 1) % vertices, 0.9});
      const host_matrix a = distribute(m, row_1d, {vertices, vertices}, mine);
      const auto x =
          generate<vertex_rows, double>(m, {vertices, f}, [](auto i, auto j) { return element(i, j); });
      const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % classes; });
      const auto deep = [&](const nn::model_options& options) -> host_model {
        const host_builder b(a, options);
        return {b, nn::chain<nn::relu>(b, std::vector<global_index>(9, f),
                                       [&](std::size_t, auto in, auto out, const auto& with) {
                                         return nn::recorded(with, in, [&](auto& make, auto h) {
                                           const auto inner = relu(gemm(h, make.glorot("W", {in, 40})));
                                           return spmm(a, gemm(inner, make.glorot("V", {40, out})));
                                         });
                                       })};
      };
      const auto& meter = *m.queue().meter();
      const auto peak_of = [&](nn::activation_checkpointing how, std::vector<double>& found) {
        const std::size_t before = meter.current();
        m.queue().meter()->restart_peak();
        found = losses(deep({.seed = 3, .dropout = 0.25, .recompute = how}), x, labels);
        return meter.peak() - before;
      };
      std::vector<double> stored, again;
      const std::size_t most = peak_of(nn::activation_checkpointing::never, stored),
                        less = peak_of(nn::activation_checkpointing::always, again);
      CHECK(again == stored);
      CHECK(4 * less < 3 * most);

      host_model model = deep({.seed = 3, .dropout = 0.25});
      rows_matrix dz(m, x.row_blocking(), x.col_blocking());
      fill(dz, 1);
      std::vector<std::uint64_t> allocations;
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        model.forward({x, true}, {.training = true, .epoch = epoch});
        model.backward(dz);
        allocations.push_back(meter.allocations());
      }
      CHECK(allocations[3] == allocations[1]);
    });
}

TEST_CASE("a reproducible run has the same bits on every mesh") {
  std::vector<double> expected;
  for (const int ranks : {1, 2, 3, 6, 8, 9})
    for (const policy& p : {row_1d, grid_2d})
      on_threads(ranks, [&](const communicator& world) {
        const device_queue<host> queue;
        const mesh<host> m(world, default_mesh(p, ranks), reproducible(queue));
        std::vector<triplet<double>> mine;
        if (world.rank() == 0)
          for (global_index v = 0; v < n; ++v)
            for (global_index k = 1; k < 4; ++k) mine.push_back({v, (v * k + 3) % n, 0.2 + 0.1 * double(k)});
        const host_matrix a = distribute(m, p, {n, n}, mine);
        const auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
        const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % 4 - 1; });
        const std::vector<double> found = losses(gcn(a, {.seed = 3, .dropout = 0.25}), x, labels);
        if (world.rank() != 0) return;
        if (expected.empty()) expected = found;
        CHECK(found == expected);
      });
}

TEST_CASE("an input that is slices of columns, or in compressed rows, gives what a dense one gives") {
  on_threads(3, [](const communicator& world) {
    constexpr global_index targets = 2;
    const mesh<host> ranks(world, {3, 1, 1});
    const host_mesh m = alone();
    const std::vector<global_index> counts{3, 4, 5}, target_counts(3, targets);
    const std::vector<global_index> firsts{0, 3, 7};
    const auto entry = [](global_index q, auto i, auto j) { return element(10 * q + i, j); };
    const interval mine = blocking::even(f, {1, 3, 1}, nesting::cols).block(axis::col, {0, world.rank(), 0});
    const auto stacked = std::make_shared<rows_matrix>(
        generate<vertex_rows, double>(m, {12, mine.size()}, [&](global_index i, global_index j) {
          const global_index q = i < 3 ? 0 : i < 7 ? 1 : 2;
          return entry(q, i - firsts[static_cast<std::size_t>(q)], j + mine.begin);
        }));
    const auto block_of = [&](global_index q, global_index row, global_index column,
                              std::vector<triplet<double>>& to) {
      for (global_index i = 0; i < targets; ++i)
        for (global_index k = 0; k < 2; ++k)
          to.push_back({row + i, column + (i + k + q) % 3, 0.5 + double(k)});
    };
    const auto matrix = [&](matrix_shape shape, const std::vector<triplet<double>>& entries) -> host_matrix {
      return distribute(m, row_1d, shape, entries);
    };
    std::vector<triplet<double>> all, own;
    for (global_index q = 0; q < 3; ++q) block_of(q, targets * q, firsts[static_cast<std::size_t>(q)], all);
    block_of(world.rank(), 0, 0, own);
    const global_index sources = counts[static_cast<std::size_t>(world.rank())];
    const host_matrix a = matrix({targets, sources}, own);
    algebra::column_slices<double, host> slices(ranks, counts, mine, f, stacked);
    slices.multiply_by(matrix({3 * targets, 12}, all), target_counts);
    const auto h = generate<vertex_rows, double>(m, {sources, f},
                                                 [&](auto i, auto j) { return entry(world.rank(), i, j); });
    const auto dz = generate<vertex_rows, double>(m, {targets, hidden}, field(4));
    const auto result = [&](const algebra::operand<double, host>& input) {
      const host_builder b(m, a.row_blocking(), {.seed = 3, .sampled = true});
      auto layer = nn::recorded_layer<double, host>(b, a.col_blocking(), f, [&](auto& make, auto x) {
        return add_row(make.filled("b", {1, hidden}, 2), gemm(spmm(a, x), make.glorot("W", {f, hidden})));
      });
      rows_matrix z(m, a.row_blocking(), b.columns(hidden));
      for (int step = 0; step < 2; ++step) {
        layer.forward(input, z, {.training = true});
        layer.backward(input, dz, nullptr);
      }
      std::vector<double> gradient = collect(b.parameters()->gradients());
      world.all_reduce(gradient);
      for (const double of_z : collect(z)) gradient.push_back(of_z);
      return gradient;
    };
    const std::vector<double> expected = result(h);
    CHECK(largest_difference(result(slices), expected) < 1e-13);
    const auto sparse_h = compressed(h);
    CHECK(largest_difference(result(sparse_h), expected) < 1e-13);
    const host_builder b(m, a.row_blocking(), {.sampled = true});
    auto other =
        nn::recorded_layer<double, host>(b, a.col_blocking(), f, [](auto&, auto x) { return relu(x); });
    rows_matrix z(m, a.col_blocking(), b.columns(f));
    expect_error<error>("can be multiplied, with A and then with a weight, and nothing else",
                        [&] { other.forward(slices, z, {}); });
  });
}

/// Products of a stage, which nobody calls.
class no_products final : public nn::graph_products<double, host> {
 public:
  product of_matrix(const blocking&, bool) override { return nullptr; }
  product of_transpose(const blocking&) override { return nullptr; }
};

TEST_CASE("in a stage only the matrix of its products multiplies, and not its transpose forward") {
  const host_mesh m = alone();
  const auto matrix = [&](symmetry s) -> host_matrix {
    return distribute(m, row_1d, {3, 3}, std::vector<triplet<double>>{{0, 1, 1}, {1, 0, 1}}, s);
  };
  const host_matrix a = matrix(symmetry::general), other = matrix(symmetry::general),
                    symmetric = matrix(symmetry::symmetric), one_way = matrix(symmetry::one_way);
  const auto layer_with = [&](const host_matrix& of_stage, const host_matrix& of_layer) {
    const host_builder b(m, a.row_blocking());
    b.filled("before", {1, 1});
    b.multiply_with(std::make_shared<no_products>(), of_stage);
    return nn::recorded(b, f, [&](auto&, auto h) { return spmm(of_layer, h); }).width();
  };
  CHECK(layer_with(a, a) == f);
  CHECK(layer_with(one_way, one_way) == f);
  CHECK(layer_with(symmetric, transposed(symmetric)) == f);
  const char* const why = "not with another matrix of 3 x 3, or with transposed(A) forward";
  expect_error<error>(why, [&] { layer_with(a, transposed(a)); });
  expect_error<error>(why, [&] { layer_with(one_way, transposed(one_way)); });
  expect_error<error>(why, [&] { layer_with(a, other); });
}

}  // namespace test_recorded_layer
