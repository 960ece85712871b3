// SPDX-License-Identifier: Apache-2.0
// What a tape keeps, computes once, and refuses.
#include "partita/autodiff/tape.hpp"

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

TEST_CASE("later steps take no memory of the device") {
  on_threads(1, [](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1});
    auto x = generate<vertex_rows, double>(m, {50, 3}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m);
    const auto h = t.input(x), v = t.parameter(w);
    const auto loss = sum(relu(gemm(gemm(h, v), v) + gemm(h, v)) * h);
    const auto step = [&] {
      t.forward();
      t.backward(loss);
    };
    step();
    const auto* const before = std::as_const(t).gradient(v).values().data();
    const auto first = collect(t.gradient(v));
    step();
    CHECK(std::as_const(t).gradient(v).values().data() == before);
    CHECK(collect(t.gradient(v)) == first);
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
    expect_error<error>("backward needs a forward of this tape before it", [&] { t.backward(loss); });
    t.forward();
    expect_error<error>("was overwritten by what follows it; keep() it", [&] { t.value(product); });
    expect_error<error>("a tape that has run records no more", [&] { gemm(h, v); });
  });
}

}  // namespace test_autodiff_tape
