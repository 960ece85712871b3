// SPDX-License-Identifier: Apache-2.0
// Products with bias, relu and dropout against the chain of functions, and their passes over the rows.
#include "partita/algebra/epilogue.hpp"

#include "partita/algebra/row_products.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/base/function.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_epilogue {

using namespace test_support;

constexpr matrix_shape shape{31, 31};
constexpr global_index width = 7;
const dropout_mask mask{0.4, {1, 2, 3}};

double bias_of(global_index, global_index j) { return 0.1 * static_cast<double>(j) - 0.3; }
double old_of(global_index i, global_index j) { return element(i, j, 5); }

/// drop(clamp(alpha once + beta old + bias)).
std::vector<double> expected(const std::vector<double>& once, double alpha, double beta) {
  std::vector<double> y(once.size());
  for (std::size_t at = 0; at < y.size(); ++at) {
    const auto i = static_cast<global_index>(at) / width, j = static_cast<global_index>(at) % width;
    const double sum = alpha * once[at] + beta * old_of(i, j) + bias_of(0, j);
    y[at] = mask.function<double>()(i, j, std::max(sum, 0.));
  }
  return y;
}

void check_product(const host_mesh& m, const partita::sparse<double, dynamic_layout, host>& a, layout l,
                   const std::vector<double>& once, spmm_options options) {
  const auto x = generate<double>(m, l, {shape.cols, width}, field(0));
  const auto bias = generate<replicated, double>(m, {1, width}, bias_of);
  spmm_plan plan(a, x, options);
  auto y = generate<double>(m, l, {shape.rows, width}, [](auto, auto) { return NAN; });
  m.ledger().clear();
  plan(2, x, y, {.bias = &bias, .relu = true, .drop = mask});
  CHECK(m.ledger().total() == plan.predicted());
  CHECK(largest_difference(collect(y), expected(once, 2, 0)) < 1e-12);
  y = generate<double>(m, l, {shape.rows, width}, old_of);
  plan(-0.75, x, y, {.beta = 0.5, .bias = &bias, .relu = true, .drop = mask});
  CHECK(largest_difference(collect(y), expected(once, -0.75, 0.5)) < 1e-12);
}

TEST_CASE("a product with everything fused, under every policy on every mesh, of A and of A^T") {
  const std::vector<triplet<double>> entries = sparse_entries(shape);
  const std::vector<double> once = product(entries, shape, width, false),
                            transpose = product(entries, shape, width, true);
  const auto run = [&](auto policy, mesh_shape size, spmm_options options) {
    on_mesh(size, [&](const host_mesh& m) {
      const partita::sparse<double, dynamic_layout, host> a = distribute(m, policy, shape, share(entries, m));
      check_product(m, a, policy.dense, once, options);
      check_product(m, transposed(a), policy.dense, transpose, options);
      check_product(m, a, vertex_rows, once, options);
    });
  };
  for_each_mesh(rank_counts, [&](auto policy, mesh_shape size) { run(policy, size, {}); });
  for_each_mesh(std::array{4, 6}, [&](auto policy, mesh_shape size) {
    run(policy, size, {stationary::c, row_exchange::full});
    run(policy, size, {stationary::a, row_exchange::sparsity_aware});
    run(policy, size, {stationary::c, row_exchange::sparsity_aware, 3});
  });
}

TEST_CASE("what follows a product passes with it, or once more where sums travel") {
  const auto store = new_far_store();
  const std::vector<triplet<double>> entries = sparse_entries(shape);
  const auto passes = [&](mesh_shape size, std::uint64_t more) {
    on_threads(size.size(), [&](const communicator& world) {
      device_queue<host> q;
      use_far(q, {.store = store, .window = 65536});
      const mesh<host> m(world, size, q);
      const partita::sparse<double, dynamic_layout, host> a =
          distribute(m, replicated_1_5d, shape, share(entries, m));
      const auto x = generate<double>(m, replicated_1_5d.dense, {shape.cols, width}, field(0));
      const auto bias = generate<replicated, double>(m, {1, width}, bias_of);
      auto y = generate<double>(m, replicated_1_5d.dense, {shape.rows, width}, field(0));
      spmm_plan plan(a, x);
      const auto operations = [&](auto work) {
        const auto before = far_of(q)->traffic().operations;
        work();
        return far_of(q)->traffic().operations - before;
      };
      const auto once = operations([&] { plan(x, y); });
      REQUIRE(once > 0);
      CHECK(operations([&] { plan(1, x, y, {.bias = &bias, .relu = true, .drop = mask}); }) == once + more);
      CHECK(operations([&] { plan(1, x, y, {.beta = 1, .bias = &bias, .relu = true, .drop = mask}); }) ==
            once + more);
      CHECK(operations([&] {
              plan(x, y);
              add_row(bias, y);
              transform(y, y, base::positive_part{});
              dropout(y, y, mask);
            }) == once + 3);
    });
  };
  passes({1, 1, 1}, 0);
  passes({2, 1, 1}, 0);
  passes({1, 1, 2}, 1);
}

TEST_CASE("a product with a weight has the bits of the chain, on a reproducible mesh too") {
  for (const summation how : {summation::fast, summation::reproducible})
    on_threads(3, [&](const communicator& world) {
      const mesh<host> m(world, {3, 1, 1}, summing(how, 2));
      const auto x = generate<vertex_rows, double>(m, {31, 5}, field(1));
      const auto w = generate<replicated, double>(m, {5, 6}, field(2));
      const auto bias = generate<replicated, double>(m, {1, 6}, bias_of);
      auto y = generate<vertex_rows, double>(m, {31, 6}, field(3)),
           chain = generate<vertex_rows, double>(m, {31, 6}, field(3));
      gemm(x, w, y, {.beta = 1, .bias = &bias, .relu = true, .drop = mask});
      gemm(x, w, chain, {.beta = 1, .bias = &bias});
      transform(chain, chain, base::positive_part{});
      dropout(chain, chain, mask);
      CHECK(std::ranges::equal(y.values(), chain.values()));
    });
}

TEST_CASE("finishing alone, in every layout, and what does not fit") {
  on_some_layouts(std::array{matrix_shape{17, 9}}, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto bias = generate<replicated, double>(m, {1, size.cols}, bias_of);
    auto y = generate<double>(m, l, size, field(3)), chain = generate<double>(m, l, size, field(3));
    algebra::finish(y, {.bias = &bias, .relu = true, .drop = mask});
    add_row(bias, chain);
    transform(chain, chain, base::positive_part{});
    dropout(chain, chain, mask);
    CHECK(std::ranges::equal(y.values(), chain.values()));
    const auto narrow = generate<replicated, double>(m, {1, 2}, bias_of);
    CHECK_THROWS_AS(algebra::finish(y, {.bias = &narrow}), shape_error);
    CHECK(m.ledger().entries().empty());
  });
}

}  // namespace test_epilogue
