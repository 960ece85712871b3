// SPDX-License-Identifier: Apache-2.0
// Products that exchange the fewest rows, of X and of sums: the reference, and words that no one side needs.
#include "partita/transfer/row_cover.hpp"

#include "partita/transfer/assign_values.hpp"
#include "support/matching.hpp"
#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_row_cover {

using namespace test_support;

using problem = spmm_problem;

constexpr spmm_options cover{.rows = row_exchange::cover};

/// Some rows and columns with many entries, and few entries elsewhere.
std::vector<triplet<double>> hub_entries(matrix_shape shape) {
  std::vector<triplet<double>> entries;
  for (global_index i = 0; i < shape.rows; ++i)
    for (global_index j = 0; j < shape.cols; ++j)
      if (i % 11 == 3 || j % 13 == 5 || (i * 7 + j * 5) % 31 == 0)
        entries.push_back({i, j, element(i, j, 9)});
  return entries;
}

auto distributed(const host_mesh& m, const policy& named, const problem& p, symmetry kind) {
  return distribute(m, named, growing(p.shape.rows, m.shape()), growing(p.shape.cols, m.shape()),
                    share(p.entries, m), kind);
}

/// A product in layout l, with what is added and clamped, against the one that exchanges needed rows.
void check_covered(const auto& a, layout l, const problem& p, bool transpose, int chunks = 0) {
  const auto& m = a.mesh();
  check_product(a, l, p, transpose, {.rows = row_exchange::cover, .chunks = chunks});
  const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
  const auto x = generate<double>(m, l, a.col_blocking(), features, field(0));
  const auto run = [&](row_exchange rows) {
    auto y = generate<double>(m, l, a.row_blocking(), features, field(1));
    spmm_plan plan(a, x, {stationary::a, rows, chunks});
    if (m.shape().row > 1) CHECK(plan.options().rows == rows);
    m.ledger().clear();
    plan(2, x, y, {.beta = -0.5, .relu = true});
    CHECK(heard(m) == plan.predicted());
    return std::pair(collect(y), plan.predicted().words);
  };
  const auto [expected, needed] = run(row_exchange::sparsity_aware);
  const auto [found, words] = run(row_exchange::cover);
  CHECK(largest_difference(found, expected) < 1e-12);
  global_index all[] = {words, needed};
  m.world().all_reduce(all);
  CHECK(all[0] <= all[1]);
}

TEST_CASE("covers on every policy and mesh, of A and A^T, stored and not, and in chunks") {
  const auto check = [](const problem& p, const auto& rank_counts) {
    on_usual_meshes(rank_counts, [&](const host_mesh& m, const policy& named) {
      const auto a = distributed(m, named, p, symmetry::general);
      check_covered(a, named.dense, p, false);
      check_covered(transposed(a), vertex_rows, p, true);
      check_covered(transposed(distributed(m, named, p, symmetry::one_way)), named.dense, p, true, 3);
    });
  };
  check({{29, 37}, 5, hub_entries({29, 37})}, std::array{1, 2, 3, 4, 6, 8, 9, 12, 16});
  check({{9, 23}, 4}, std::array{2, 6, 8});
}

TEST_CASE(
    "row_1d: f words for every edge of maximum matchings of the remote blocks, fewer than needed rows") {
  constexpr global_index n = 61, f = 3;
  const problem p{{n, n}, f, hub_entries({n, n})};
  for (const int ranks : {2, 5, 8})
    on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
      const blocking features = blocking::even(f, m.shape(), nesting::cols);
      const auto words = [&](const auto& of, row_exchange rows) {
        global_index all[] = {spmm_plan(of, row_1d.dense, features, {.rows = rows}).predicted().words};
        m.world().all_reduce(all);
        return all[0];
      };
      global_index edges = 0;
      const blocking& blocks = a.row_blocking();
      for (int r = 0; r < ranks; ++r)
        for (int s = 0; s < ranks; ++s) {
          const interval rows = blocks.block(axis::row, {r, 0, 0}), cols = blocks.block(axis::row, {s, 0, 0});
          std::vector<std::vector<int>> columns_of(static_cast<std::size_t>(rows.size()));
          for (const auto& e : p.entries)
            if (r != s && rows.contains(e.row) && cols.contains(e.col))
              columns_of[static_cast<std::size_t>(e.row - rows.begin)].push_back(
                  static_cast<int>(e.col - cols.begin));
          edges += maximum_matching(columns_of, static_cast<int>(cols.size()));
        }
      for (const auto& of : {a, transposed(a)}) {
        CHECK(words(of, row_exchange::cover) == f * edges);
        CHECK(words(of, row_exchange::cover) < words(of, row_exchange::sparsity_aware));
      }
    });
}

TEST_CASE("values cannot be replaced while other ranks have copies of them") {
  const problem p{{17, 17}, 2};
  on_mesh({3, 1, 1}, [&](const host_mesh& m) {
    auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
    const auto x = generate<double>(m, row_1d.dense, {17, 2}, field(0));
    const auto twice = [&] { assign_values(a, [](auto, auto, double v) { return 2 * v; }); };
    {
      const spmm_plan plan(a, x, cover);
      expect_error<error>("has a product with row_exchange::cover", twice);
    }
    twice();
    auto expected = product(p.entries, p.shape, 2, false);
    for (double& v : expected) v *= 2;
    CHECK(largest_difference(collect(spmm(a, x, cover)), expected) < 1e-12);
  });
}

TEST_CASE("what covers are not for names them") {
  const problem p{{17, 17}, 2};
  expect_error<error>({2, 2, 1}, "row_exchange::cover is for blocks of A that stay", [&](const host_mesh& m) {
    const auto a = distribute(m, grid_2d, p.shape, share(p.entries, m));
    spmm(a, generate<double>(m, grid_2d.dense, p.shape, field(0)), {stationary::c, row_exchange::cover});
  });
  on_threads(2, [&](const communicator& world) {
    const host_mesh m(world, {2, 1, 1}, summing(summation::reproducible));
    const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
    expect_error<error>(
        "row_exchange::cover is for products with the values that a matrix has, on a mesh that", [&] {
          spmm(a, generate<double>(m, row_1d.dense, {17, 2}, field(0)), cover);
        });
  });
}

}  // namespace test_row_cover
