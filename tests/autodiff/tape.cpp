// SPDX-License-Identifier: Apache-2.0
// What a tape keeps, computes once, and refuses.
#include "partita/autodiff/tape.hpp"

#include "partita/autodiff/broadcasts.hpp"
#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_tape {

using namespace partita;
using namespace test_support;

TEST_CASE("what depends on constants is computed once, and has no gradient") {
  on_threads(4, [](const communicator& world) {
    const mesh<host> m(world, {4, 1, 1});
    std::vector<triplet<double>> mine;
    if (world.rank() == 0)
      for (global_index v = 0; v < 9; ++v) mine.push_back({v, (v + 4) % 9, 2});
    const partita::sparse<double, dynamic_layout, host> a = distribute(m, row_1d, {9, 9}, mine);
    const auto x = generate<vertex_rows, double>(m, {9, 3}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {3, 2}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m);
    const auto ax = spmm(a, t.constant(x));
    const auto z = t.keep(gemm(ax, t.parameter(w)));
    CHECK(!ax.needs_gradient());
    CHECK(t.predicted_forward() == traffic{});
    CHECK(t.predicted_backward() == algebra::predicted_sum<double>(m, 6));
    m.ledger().clear();
    t.forward();
    CHECK(heard(m).words > 0);
    CHECK(collect(t.value(z)) == collect(gemm(spmm(a, x), w)));
    m.ledger().clear();
    t.forward();
    CHECK(heard(m) == traffic{});
    expect_error<error>("a constant of 9 x 3 has no gradient", [&] { t.gradient(ax); });
  });
}

TEST_CASE("later steps take no memory of the device, and find what they need after it was released") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    const partita::sparse<double, dynamic_layout, host> a = distribute(
        m, row_1d, {50, 50}, std::vector<triplet<double>>{{world.rank(), 49, 1}, {40, world.rank(), 2}});
    auto x = generate<vertex_rows, double>(m, {50, 3}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m);
    const auto h = t.input(x), v = t.parameter(w);
    const auto norm = layer_norm(h, column_sums(h), column_sums(h));
    const auto loss = sum(relu(spmm(a, gemm(gemm(h, v), v)) + gemm(h, v)) * h) + sum(norm) +
                      sum(log_softmax(gemm(row_softmax(h), v)) * h) + soft_cross_entropy(gemm(h, v), x);
    const auto step = [&] {
      t.forward();
      t.backward(loss);
    };
    step();
    const auto* const before = std::as_const(t).gradient(v).values().data();
    const auto first = collect(t.gradient(v));
    const auto allocations = m.queue().meter()->allocations();
    step();
    CHECK(m.queue().meter()->allocations() == allocations);
    CHECK(std::as_const(t).gradient(v).values().data() == before);
    CHECK(collect(t.gradient(v)) == first);
    const std::size_t held = m.queue().meter()->current();
    t.release();
    CHECK(m.queue().meter()->current() < held);
    step();
    CHECK(collect(t.gradient(v)) == first);
    CHECK(m.queue().meter()->current() == held);
  });
}

TEST_CASE("a parameter is one variable, whoever asks for it, and has the gradient of all its uses") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    auto x = generate<vertex_rows, double>(m, {5, 3}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j + 1); });
    host_tape t(m);
    const auto h = t.input(x), v = t.parameter(w);
    const auto layer = [&](auto y) { return relu(gemm(y, t.parameter(w))); };
    const auto z = layer(layer(h));
    check_tape(t, sum(z * z) + 0.5 * sum(z), x, h, w, v);
    dense<double, replicated, host> gradient(m, {3, 3});
    host_tape given(m);
    const auto y = gemm(gemm(given.input(x), given.parameter(w, gradient)), given.parameter(w, gradient));
    const auto loss = sum(y);
    given.forward();
    given.backward(loss);
    host_tape own(m);
    const auto u = own.parameter(w);
    const auto same_loss = sum(gemm(gemm(own.input(x), u), u));
    own.forward();
    own.backward(same_loss);
    algebra::sum_parts(m, gradient.values());
    CHECK(collect(gradient) == collect(own.gradient(u)));
  });
}

TEST_CASE("a tape refuses by name") {
  on_threads(1, [](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1});
    auto x = generate<vertex_rows, double>(m, {4, 3}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m), other(m);
    const auto h = t.input(x), v = t.parameter(w);
    const auto product = gemm(h, v);
    const auto loss = sum(relu(product));
    expect_error<error>("a verb was given variables of two tapes", [&] { gemm(other.input(x), v); });
    expect_error<error>("backward needs a preceding forward of this tape", [&] { t.backward(loss); });
    t.forward();
    expect_error<error>("was overwritten by what follows it; keep() it", [&] { t.value(product); });
    expect_error<error>("a tape cannot record once it has run", [&] { gemm(h, v); });
  });
}

}  // namespace test_autodiff_tape
