// SPDX-License-Identifier: Apache-2.0
// Products of variables against finite differences, and what they send.
#include "partita/autodiff/products.hpp"

#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/comm/threads.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_products {

using namespace partita;
using namespace test_support;

const auto square = [](auto x) { return x * x; };

TEST_CASE("gradients of products, under every policy") {
  for (const int ranks : {1, 2, 3, 4, 6})
    for (const policy& p : named_policies) {
      on_threads(ranks, [&](const communicator& world) {
        const mesh<host> m(world, default_mesh(p, ranks));
        constexpr global_index n = 7;
        std::vector<triplet<double>> mine;
        if (world.rank() == 0)
          for (global_index v = 0; v < n; ++v)
            for (global_index k = 1; k < 4; ++k)
              mine.push_back({v, (v * k + 3) % n, 0.1 * static_cast<double>(v + k)});
        const partita::sparse<double, dynamic_layout, host> a = distribute(m, p, {n, n}, mine);
        auto x = generate<vertex_rows, double>(m, {n, 3}, [](auto i, auto j) { return element(i, j); });
        auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i + 2, j); });
        host_tape t(m);
        const auto h = t.input(x), v = t.parameter(w);
        // The parameter is used four times, one of them transposed, h twice.
        const auto q = spmm(a, gemm(h, v)) + gemm(h, v);
        const auto z = spmm(transposed(a), gemm(relu(q), transposed(v))) + gemm(q, v);
        const auto back = redistribute(spmm(a, redistribute(z, p.dense)), vertex_rows);
        check_tape(t, sum(transform(back, square)), x, h, w, v);
      });
    }
}

TEST_CASE("products refuse what does not fit") {
  on_threads(2, [&](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    dense<double, vertex_rows, host> x(m, {4, 3});
    dense<double, replicated, host> w(m, {2, 3});
    host_tape t(m);
    const auto h = t.input(x), v = t.parameter(w);
    expect_error<shape_error>("gemm: X of 4 x 3 does not fit W of 2 x 3, of which 2 columns are summed",
                              [&] { gemm(h, v); });
    expect_error<error>("gradients of replicated matrices are sums", [&] { redistribute(h, replicated); });
  });
}

}  // namespace test_autodiff_products
