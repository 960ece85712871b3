// SPDX-License-Identifier: Apache-2.0
// New values on a fixed pattern: plans give the bits of a matrix distributed anew, everywhere.
#include "partita/transfer/assign_values.hpp"

#include "partita/algebra/spmm.hpp"
#include "support/matrices.hpp"

namespace test_assign_values {

using namespace test_support;

constexpr matrix_shape size{31, 31};

std::vector<triplet<double>> with_values(std::vector<triplet<double>> entries, double factor) {
  for (auto& e : entries)
    e.value = factor * static_cast<double>(e.row + 1) - 0.25 * static_cast<double>(e.col);
  return entries;
}
std::vector<triplet<double>> both_ways(const std::vector<triplet<double>>& entries) {
  std::vector<triplet<double>> all = entries;
  for (const auto& e : entries) all.push_back({e.col, e.row, e.value});
  return all;
}

/// y = A x and A^T x.
struct products {
  explicit products(const sparse<double, dynamic_layout, host>& a, layout l, spmm_options options)
      : x(generate<double>(a.mesh(), l, {size.cols, 5}, field(0))),
        y(a.mesh(), l, matrix_shape{size.rows, 5}),
        forward(a, x, options),
        backward(transposed(a), x, options) {}

  std::vector<double> operator()() {
    forward(x, y);
    std::vector<double> both = collect(y);
    backward(x, y);
    const std::vector<double> of_transpose = collect(y);
    both.insert(both.end(), of_transpose.begin(), of_transpose.end());
    return both;
  }

  dense<double, dynamic_layout, host> x, y;
  spmm_plan<double, host> forward, backward;
};

void check(const host_mesh& m, const policy& p, symmetry kind, spmm_options options) {
  const auto entries = kind == symmetry::symmetric ? both_ways(sparse_entries(size)) : sparse_entries(size);
  const auto new_entries =
      kind == symmetry::symmetric ? both_ways(with_values(sparse_entries(size), 3)) : with_values(entries, 3);
  const auto mine = [&](const auto& all) { return share(all, m); };
  auto a = distribute(m, p, size, mine(entries), kind);
  const auto copy_of_a = a;
  products planned(a, p.dense, options);
  const std::vector<double> before = planned();
  assign_values(a, mine(new_entries));
  const auto anew = distribute(m, p, size, mine(new_entries), kind);
  CHECK(planned() == products(anew, p.dense, options)());
  CHECK(products(copy_of_a, p.dense, options)() == planned());
  assign_values(a, mine(entries));
  CHECK(planned() == before);
}

TEST_CASE("planned products see values that travel to their owners") {
  on_usual_meshes(rank_counts, [&](const host_mesh& m, const policy& p) {
    for (const symmetry kind : {symmetry::general, symmetry::symmetric})
      for (const row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware})
        check(m, p, kind, {.rows = rows});
  });
}

TEST_CASE("values by a function of global indices and of what was there") {
  on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const policy& p) {
    const auto entries = share(sparse_entries(size), m);
    auto a = distribute(m, p, size, entries);
    products planned(a, p.dense, {});
    planned();
    m.ledger().clear();
    assign_values(a, [](global_index i, global_index j, double value) {
      return value * static_cast<double>(i) - static_cast<double>(j);
    });
    CHECK(m.ledger().entries().empty());
    auto expected = entries;
    for (auto& e : expected) e.value = e.value * static_cast<double>(e.row) - static_cast<double>(e.col);
    CHECK(planned() == products(distribute(m, p, size, expected), p.dense, {})());
  });
}

TEST_CASE("duplicates add up, and entries that nobody gives become 0") {
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    const auto entries = share(sparse_entries(size), m);
    auto a = distribute(m, grid_2d, size, entries);
    products planned(a, grid_2d.dense, {});
    auto twice = entries;
    twice.insert(twice.end(), entries.begin(), entries.end());
    assign_values(a, twice);
    auto doubled = entries;
    for (auto& e : doubled) e.value *= 2;
    CHECK(planned() == products(distribute(m, grid_2d, size, doubled), grid_2d.dense, {})());
    assign_values(a, std::vector<triplet<double>>());
    for (const double y : planned()) CHECK(y == 0);
  });
}

TEST_CASE("what does not fit is refused, and A keeps its values") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const std::vector<triplet<double>> entries{{0, 1, 2.0}, {1, 0, 2.0}, {3, 3, 1.0}};
    auto a = distribute(m, row_1d, {4, 4}, entries),
         s = distribute(m, row_1d, {4, 4}, entries, symmetry::symmetric);
    const auto refused = [&](auto& matrix, std::vector<triplet<double>> given, const char* why) {
      CHECK_THROWS_WITH_AS(assign_values(matrix, given), why, error);
      CHECK(matrix.local()->values.span()[0] == 2);
    };
    refused(a, {{0, 1, 5.0}, {2, 2, 1.0}},
            "assign_values: A has no entry at (2, 2), and the pattern is fixed");
    refused(a, {{0, 4, 5.0}}, "entry (0, 4) is outside a matrix of 4 x 4");
    refused(a, {{0, 1, std::numeric_limits<double>::quiet_NaN()}},
            "entry (0, 1) of a sparse matrix is NaN, which is not a finite number");
    refused(s, {{0, 1, 5.0}},
            "a matrix of 4 x 4 is stored as symmetric, but the values assigned to it are not");
    CHECK_THROWS_WITH_AS(assign_values(a, [](auto, auto, double v) { return v / 0.0; }),
                         "assign_values: the new value at (0, 1) is not a finite number", error);
    CHECK_THROWS_WITH_AS(
        assign_values(s, [](auto i, auto, double) { return static_cast<double>(i); }),
        "assign_values: the new values at (0, 1) and (1, 0) differ, but the matrix is stored as symmetric",
        error);
    CHECK_THROWS_WITH_AS(a.assign_local_values(std::vector<double>(2), {}),
                         "a matrix of 4 x 4 has 3 entries on this rank, not 2", shape_error);
  });
}

TEST_CASE("a view of a caller's arrays gets no new values") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const std::vector<local_index> offsets{0, 1, 2}, columns{1, 0};
    const std::vector<double> values{2, 3};
    auto a = sparse<double, dynamic_layout, host>::view(m, row_1d, {2, 2}, {offsets, columns, values});
    CHECK_THROWS_WITH_AS(
        assign_values(a, std::vector<triplet<double>>{{0, 1, 5.0}}),
        "a matrix of 2 x 2 is a view of its caller's arrays, whose values cannot be replaced", error);
  });
}

}  // namespace test_assign_values
