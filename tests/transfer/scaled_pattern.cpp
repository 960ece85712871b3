// SPDX-License-Identifier: Apache-2.0
// diag(r) P diag(c) without values: products and traffic, and where values are stored after all.
#include "partita/transfer/scaled_pattern.hpp"

#include "partita/algebra/spmm.hpp"
#include "partita/memory/mapped_store.hpp"
#include "partita/sampling/graph.hpp"
#include "partita/transfer/assign_values.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"
#include "support/summing.hpp"

namespace test_scaled_pattern {

using namespace test_support;
using host_sparse = sparse<double, dynamic_layout, host>;

/// P and factors of its rows and columns, or none; values of P's entries, which must not be read.
struct problem {
  matrix_shape shape;
  bool by_rows = true, by_columns = true;
  std::uint64_t sparsity = 2;

  std::vector<triplet<double>> places = [this] {
    std::vector<triplet<double>> found = sparse_entries(shape, sparsity);
    for (auto& e : found) e.value = 1e3;
    return found;
  }();
  std::vector<double> r = factors(shape.rows, 21, by_rows), c = factors(shape.cols, 22, by_columns);

  static std::vector<double> factors(global_index count, std::uint64_t number, bool some) {
    std::vector<double> all;
    for (global_index k = 0; k < count && some; ++k) all.push_back(0.25 + element(k, 0, number));
    return all;
  }
  /// The entries with their values.
  std::vector<triplet<double>> entries() const {
    std::vector<triplet<double>> all = places;
    for (auto& e : all)
      e.value = (by_rows ? r[static_cast<std::size_t>(e.row)] : 1) *
                (by_columns ? c[static_cast<std::size_t>(e.col)] : 1);
    return all;
  }
  local::value_form form() const { return {true, by_rows, by_columns}; }
};

host_sparse distributed(const host_mesh& m, const policy& of, const problem& p,
                        symmetry kind = symmetry::general) {
  const auto mine = share(p.places, m);
  return distribute(m, of, p.shape, transfer::scaled_pattern(mine, p.r, p.c), kind);
}

bool stores_values(const host_sparse& a) { return !a.local()->form.factored; }

constexpr spmm_options every_option[] = {{stationary::c, row_exchange::full},
                                         {stationary::c, row_exchange::sparsity_aware},
                                         {stationary::c, row_exchange::sparsity_aware, 3},
                                         {stationary::a, row_exchange::full},
                                         {stationary::a, row_exchange::sparsity_aware},
                                         {stationary::a, row_exchange::cover},
                                         {stationary::automatic, row_exchange::automatic}};

/// A X or A^T X twice, then -0.75 A X + 0.5 Y; nothing is allocated in the second call.
void check_product(const host_sparse& a, const policy& of, const std::vector<double>& once,
                   spmm_options options, global_index width) {
  const auto& m = a.mesh();
  const auto x = generate<double>(m, of.dense, {a.shape().cols, width}, field(0));
  host_dense<> y(m, of.dense, {a.shape().rows, width});
  spmm_plan plan(a, x, options);
  plan(x, y);
  run_again(m, plan, x, y);
  CHECK_MESSAGE(largest_difference(collect(y), once) < 1e-12, std::string(of.name), " on ",
                to_string(m.shape()));
  plan(-0.75, x, 0.5, y);
  std::vector<double> expected = once;
  for (double& v : expected) v *= -0.25;
  CHECK(largest_difference(collect(y), expected) < 1e-12);
}

void check_products(const policy& of, mesh_shape shape, const problem& p, std::span<const spmm_options> how,
                    global_index width, std::size_t tile_entries = base::max_tile_entries) {
  const auto entries = p.entries();
  const auto straight = product(entries, p.shape, width, false),
             across = product(entries, p.shape, width, true);
  on_threads(shape.size(), [&](const communicator& world) {
    const host_mesh m(world, shape, device_queue<host>(), tile_entries);
    for (const symmetry kind : {symmetry::general, symmetry::one_way}) {
      const auto a = distributed(m, of, p, kind);
      CHECK(!stores_values(a));
      CHECK(a.local()->stored_values().size() == a.local()->values_size());
      for (const spmm_options& o : how) {
        check_product(a, of, straight, o, width);
        check_product(transposed(a), of, across, o, width);
      }
    }
  });
}

constexpr spmm_options automatic[] = {{}};

TEST_CASE("every policy on every mesh gives A X and A^T X, with and without a stored transpose") {
  const problem p{{101, 101}};
  for_each_mesh(rank_counts, [&](auto of, mesh_shape shape) { check_products(of, shape, p, automatic, 5); });
}

TEST_CASE("every schedule, factors of rows or columns alone, and none") {
  for (const problem& p : {problem{{61, 61}, true, true}, problem{{61, 61}, true, false},
                           problem{{61, 61}, false, true}, problem{{61, 61}, false, false}}) {
    if (sanitized && p.r.empty() != p.c.empty()) continue;
    for_each_mesh(std::array{1, 4, 6},
                  [&](auto of, mesh_shape shape) { check_products(of, shape, p, every_option, 7); });
  }
  for_each_mesh(std::array{12}, [&](auto of, mesh_shape shape) {
    check_products(of, shape, problem{{61, 61}}, every_option, 7);
  });
}

TEST_CASE("rectangular, fewer columns of X than ranks, and tiles in parts of few entries") {
  for (const problem& p : {problem{{43, 91}}, problem{{80, 41}}})
    for_each_mesh(std::array{6, 8}, [&](auto of, mesh_shape shape) {
      check_products(of, shape, p, every_option, 2);
      check_products(of, shape, p, every_option, 3, 100);
    });
}

TEST_CASE("where A moves along col, factors do in the place of values") {
  const problem p{{64, 64}};
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto mine = share(p.entries(), m);
    const auto factored = distributed(m, grid_2d, p), valued = distribute(m, grid_2d, p.shape, mine);
    CHECK(stores_values(valued));
    const auto x = generate<double>(m, grid_2d.dense, {64, 8}, field(0));
    const spmm_options moves{stationary::c, row_exchange::full};
    const auto words = [&](const host_sparse& a) { return spmm_plan(a, x, moves).predicted().words; };
    coordinates other = m.at();
    other.col = 1 - other.col;
    const auto all = sparse_entries(p.shape, p.sparsity);
    const interval rows = valued.row_range();
    global_index nonzeros = 0;  // of the block that comes
    for (const auto& e : all) nonzeros += rows.contains(e.row) && (e.col / 16) % 2 == other.col;
    CHECK(words(valued) - words(factored) == nonzeros - (32 + 32));
  });
}

TEST_CASE("float and symmetric") {
  problem p{{40, 40}};
  std::vector<triplet<float>> both;
  for (const auto& e : p.places) both.insert(both.end(), {{e.row, e.col, 1}, {e.col, e.row, 1}});
  std::ranges::sort(both, {}, [](const auto& e) { return std::pair(e.row, e.col); });
  both.erase(std::ranges::unique(both, {}, [](const auto& e) { return std::pair(e.row, e.col); }).begin(),
             both.end());
  on_each_mesh(std::array{1, 4}, [&](const host_mesh& m, const policy& of) {
    const auto mine = share(both, m);
    const auto a = distribute(m, of, p.shape, transfer::scaled_pattern(mine, p.r, p.r), symmetry::symmetric);
    CHECK(a.local() == transposed(a).local());
    CHECK(a.local()->form.factored);
    const auto x = generate<float>(m, of.dense, {40, 6}, field(0));
    std::vector<triplet<double>> entries;
    for (const auto& e : both)
      entries.push_back(
          {e.row, e.col, p.r[static_cast<std::size_t>(e.row)] * p.r[static_cast<std::size_t>(e.col)]});
    const std::vector<float> y = collect(spmm(a, x));
    CHECK(largest_difference({y.begin(), y.end()}, product(entries, p.shape, 6, false)) < 1e-5);
    const std::vector<float> values = a.local()->values_of_entries(m.queue());
    CHECK(values.size() == a.local()->nonzeros);
    CHECK_THROWS_AS(distribute(m, of, p.shape, transfer::scaled_pattern(mine, p.r, p.c), symmetry::symmetric),
                    shape_error);
  });
}

TEST_CASE("values are stored for repeated entries, few entries, reproducible sums and far memory") {
  const auto check_values = [](const host_mesh& m, const problem& p, const auto& places, double repeats) {
    const auto mine = share(places, m);
    const auto a = distribute(m, row_1d, p.shape, transfer::scaled_pattern(mine, p.r, p.c));
    CHECK(stores_values(a));
    CHECK(a.local()->stored_values().size() == a.local()->nonzeros);
    auto entries = p.entries();
    entries.front().value *= repeats;
    const auto x = generate<double>(m, row_1d.dense, {p.shape.cols, 3}, field(0));
    CHECK(largest_difference(collect(spmm(a, x)), product(entries, p.shape, 3, false)) < 1e-12);
  };
  with_mesh({3, 1, 1}, [&](const host_mesh& m) {
    const problem many{{50, 50}}, few{{50, 50}, true, true, 40};
    auto repeated = many.places;
    repeated.push_back(repeated.front());
    check_values(m, many, repeated, 2);
    check_values(m, few, few.places, 1);
    const host_mesh exact(m.world(), {3, 1, 1}, summing(summation::reproducible));
    check_values(exact, many, many.places, 1);
    const device_queue<host> far;
    use_far(far, {.store = new_far_store(), .window = 1 << 14});
    check_values(host_mesh(m.world(), mesh_shape{3, 1, 1}, far), many, many.places, 1);
  });
}

TEST_CASE("sampling reads the products of factors") {
  const problem p{{40, 40}};
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const auto a = distributed(m, row_1d, p);
    const auto valued = distribute(m, row_1d, p.shape, share(p.entries(), m));
    const sampling::graph<double> g(a), expected(valued);
    CHECK(!stores_values(a));
    CHECK(g.columns() == expected.columns());
    CHECK(largest_difference(g.values(), expected.values()) < 1e-15);
  });
}

TEST_CASE("what does not fit is named") {
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    problem p{{20, 20}};
    auto a = distributed(m, row_1d, p);
    CHECK_THROWS_WITH_AS(assign_values(a, [](auto, auto, double v) { return v; }),
                         "a matrix of 20 x 20 stores factors of its rows and columns, and no values that "
                         "could be replaced; distribute its entries with their values",
                         error);
    p.r.pop_back();
    CHECK_THROWS_WITH_AS(distributed(m, row_1d, p), "a matrix of 20 x 20 was given 19 factors of its rows",
                         shape_error);
    p.r.push_back(NAN);
    CHECK_THROWS_WITH_AS(distributed(m, row_1d, p),
                         "factor 19 of the rows of a matrix is not a finite number", error);
  });
}

}  // namespace test_scaled_pattern
