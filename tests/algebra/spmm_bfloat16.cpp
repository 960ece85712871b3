// SPDX-License-Identifier: Apache-2.0
// A X and A^T X of a bfloat16 X: the bits that its floats give, for half of the bytes, everywhere.

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/transfer/distribute.hpp"
#include "partita/transfer/scaled_pattern.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_spmm_bfloat16 {

using namespace test_support;
using base::bfloat16;

global_index bytes_of(const ledger& l) {
  global_index bytes = 0;
  for (const comm::ledger_entry& e : l.entries()) bytes += e.bytes;
  return bytes;
}

struct problem {
  matrix_shape shape;
  global_index width;
  std::vector<triplet<double>> entries = sparse_entries(shape);
  std::vector<triplet<float>> values() const {
    std::vector<triplet<float>> v;
    for (const auto& e : entries) v.push_back({e.row, e.col, static_cast<float>(e.value)});
    return v;
  }
  /// Of rows and of columns, for the same pattern without values.
  std::vector<double> factors() const {
    std::vector<double> v;
    for (global_index k = 0; k < shape.rows; ++k) v.push_back(0.25 + element(k, 0, 21));
    return v;
  }
};

struct outcome {
  std::vector<float> y;
  global_index bytes = 0;
};

/// y = A x, y = drop(clamp(A x + 0.25 y + bias)), and then y = 2 A x - 0.5 y, with what the last received.
template <class A, class X, class T>
outcome run(spmm_plan<float, host, T>& plan, const A& a, const X& x) {
  const auto& m = a.mesh();
  dense<float, dynamic_layout, host> y(m, x.layout(), a.row_blocking(), x.col_blocking());
  const auto bias = generate<replicated, float>(m, {1, x.shape().cols}, [](global_index, global_index j) {
    return 0.1F * static_cast<float>(j) - 0.3F;
  });
  plan(x, y);
  plan(1, x, y, {.beta = 0.25F, .bias = &bias, .relu = true, .drop = {0.4, {1, 2, 3}}});
  plan(2, x, -0.5F, y);
  run_again(m, plan, 2, x, -0.5F, y);
  return {std::vector<float>(y.values().begin(), y.values().end()), bytes_of(m.ledger())};
}

void check_product(const auto& a, layout l, const problem& p, spmm_options options) {
  const auto& m = a.mesh();
  const auto wide =
      generate<float>(m, l, a.col_blocking(), blocking::even(p.width, m.shape(), nesting::cols),
                      [f = field(0)](global_index i, global_index j) { return static_cast<float>(f(i, j)); });
  dense<bfloat16, dynamic_layout, host> stored(m, l, wide.row_blocking(), wide.col_blocking());
  dense<float, dynamic_layout, host> widened(m, l, wide.row_blocking(), wide.col_blocking());
  copy(wide, stored);
  copy(stored, widened);
  for (std::size_t i = 0; i < wide.values().size(); ++i)
    if (widened.values()[i] != float{bfloat16(wide.values()[i])}) FAIL("element ", i);
  spmm_plan whole(a, widened, options);
  spmm_plan half(a, stored, options);
  CHECK(whole.predicted() == half.predicted());
  CHECK(whole.predicted_words_of_x() == half.predicted_words_of_x());
  const outcome expected = run(whole, a, widened), found = run(half, a, stored);
  CHECK(found.y == expected.y);
  CHECK(expected.bytes - found.bytes == 2 * half.predicted_words_of_x());
  if (m.shape().col == 1 && m.shape().depth == 1 && l == row_1d.dense && a.is_stored() &&
      options.rows != row_exchange::cover)
    CHECK(2 * found.bytes == expected.bytes);
}

void check(const policy& named, mesh_shape shape, const problem& p, spmm_options options, symmetry kind) {
  on_mesh(shape, [&](const host_mesh& m) {
    const auto mine = share(p.values(), m);
    const auto a = distribute(m, named, p.shape, mine, kind);
    for (const layout l : {named.dense, vertex_rows}) {
      check_product(a, l, p, options);
      check_product(transposed(a), l, p, options);
    }
    const std::vector<double> factors = p.factors();
    const auto scaled = distribute(m, named, p.shape, transfer::scaled_pattern(mine, factors, factors), kind);
    check_product(scaled, named.dense, p, options);
    check_product(transposed(scaled), named.dense, p, options);
  });
}

TEST_CASE("an X of bfloat16: the bits of its floats, and half of their bytes, on every mesh") {
  const problem p{{47, 47}, 5};
  for_each_mesh(rank_counts,
                [&](auto policy, mesh_shape shape) { check(policy, shape, p, {}, symmetry::general); });
}

TEST_CASE("an X of bfloat16 in every schedule, in chunks, and for an A^T that is not stored") {
  const problem p{{61, 61}, 7};
  for_each_mesh(std::array{2, 4, 6, 12}, [&](auto policy, mesh_shape shape) {
    for (const stationary kept : {stationary::c, stationary::a})
      for (const row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware})
        for (const symmetry kind : {symmetry::general, symmetry::one_way})
          check(policy, shape, p, {kept, rows, 0}, kind);
    check(policy, shape, p, {stationary::automatic, row_exchange::sparsity_aware, 3}, symmetry::one_way);
    if (shape.size() == 4 || shape.size() == 12)
      check(policy, shape, p, {stationary::automatic, row_exchange::cover}, symmetry::one_way);
  });
}

TEST_CASE("covers of floats: the product that exchanges needed rows") {
  const problem p{{61, 61}, 7};
  for (const policy& named : {row_1d, split_3d})
    on_mesh(default_mesh(named, 8), [&](const host_mesh& m) {
      const auto a = distribute(m, named, p.shape, share(p.values(), m));
      const auto x = generate<float>(m, named.dense, {61, 7}, [](global_index i, global_index j) {
        return static_cast<float>(element(i, j, 0));
      });
      const auto found = collect(spmm(a, x, {.rows = row_exchange::cover})), expected = collect(spmm(a, x));
      for (std::size_t i = 0; i < found.size(); ++i)
        if (std::abs(found[i] - expected[i]) > 1e-5F) FAIL("element ", i);
    });
}

TEST_CASE("an X of bfloat16 and an A without values") {
  on_mesh({4, 1, 1}, [](const host_mesh& m) {
    const problem p{{61, 61}, 7};
    const auto mine = share(p.values(), m);
    const std::vector<double> factors = p.factors();
    const auto a = distribute(m, row_1d, p.shape, transfer::scaled_pattern(mine, factors, factors));
    CHECK(a.local()->form.factored);
    check_product(a, row_1d.dense, p, {});
  });
}

TEST_CASE("an X of bfloat16 is refused on a reproducible mesh") {
  on_threads(1, [](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1}, summing(summation::reproducible));
    const problem p{{9, 9}, 3};
    const auto a = distribute(m, row_1d, p.shape, share(p.values(), m));
    const dense<bfloat16, vertex_rows, host> x(m, {9, 3});
    CHECK_THROWS_WITH_AS(
        spmm(a, x), "spmm_fused is not available on a reproducible mesh: its sums depend on the mesh", error);
  });
}

}  // namespace test_spmm_bfloat16
