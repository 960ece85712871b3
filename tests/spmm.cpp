// Y = A X and Y = A^T X: right, and moving exactly what the closed forms say, for every policy on every mesh.
#include "partita/algebra/spmm.hpp"

#include <doctest/doctest.h>

#include "partita/transfer/distribute.hpp"
#include "support/meshes.hpp"
#include "support/test_matrices.hpp"

namespace test_spmm {

using namespace partita;
using namespace test_support;

namespace {

struct problem {
  extent shape;  // of A
  global_index width;
  std::vector<triplet<double>> entries = sparse_entries(shape);
};

template <class Policy>
auto distributed(const mesh<host>& m, const problem& p, const blocking& rows, const blocking& cols) {
  const auto mine = share(p.entries, m.rank(), m.size());
  return distribute<typename Policy::sparse_layout, double>(m, rows, cols,
                                                            std::span<const triplet<double>>(mine));
}

/// Plans and runs a product twice; checks values, traffic and that the second run allocates nothing.
template <class Policy>
void check_product(const mesh<host>& m, const problem& p, const blocking& rows, const blocking& cols,
                   bool transpose, spmm_options options) {
  using matrix = dense<double, typename Policy::dense_layout, host>;
  const auto stored = distributed<Policy>(m, p, rows, cols);
  const auto a = transpose ? transposed(stored) : stored;
  const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
  const matrix x =
      generate<typename Policy::dense_layout, double>(m, a.col_blocking(), features, dense_entry);
  matrix y(m, a.row_blocking(), features);
  spmm_plan<double, typename Policy::sparse_layout, typename Policy::dense_layout, host> plan(a, features,
                                                                                              options);
  plan(x, y);
  const auto allocations = m.queue().meter()->allocations();
  m.ledger().clear();
  plan(x, y);
  CHECK(m.ledger().total() == plan.predicted());
  CHECK(m.queue().meter()->allocations() == allocations);
  CHECK_MESSAGE(largest_difference(collect(y), product(p.entries, p.shape, p.width, transpose)) < 1e-12,
                std::string(Policy::name), " on ", to_string(m.shape()), transpose ? ", transposed" : "");
}

template <class Policy>
void check_even(mesh_shape shape, const problem& p, spmm_options options,
                std::size_t tile_entries = most_tile_entries) {
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape, queue<host>(), tile_entries);
    const blocking rows = blocking::even(p.shape.rows, shape, nesting::rows);
    const blocking cols = blocking::even(p.shape.cols, shape, nesting::rows);
    for (bool transpose : {false, true}) check_product<Policy>(m, p, rows, cols, transpose, options);
  });
}

constexpr spmm_options every_option[] = {{stationary::sparse_moves, exchange::whole},
                                         {stationary::sparse_moves, exchange::needed},
                                         {stationary::sparse_stays, exchange::whole},
                                         {stationary::sparse_stays, exchange::needed},
                                         {stationary::automatic, exchange::automatic}};

}  // namespace

TEST_CASE("every policy on every mesh gives A X and A^T X") {
  const problem p{{47, 47}, 5};
  for_each_mesh(rank_counts,
                [&](auto policy, mesh_shape shape) { check_even<decltype(policy)>(shape, p, {}); });
}

TEST_CASE("every schedule and exchange gives the same product") {
  const problem p{{29, 29}, 7};
  for_each_mesh(std::array{4, 6, 12}, [&](auto policy, mesh_shape shape) {
    for (const spmm_options& o : every_option) check_even<decltype(policy)>(shape, p, o);
  });
}

TEST_CASE("tiles in parts of few entries give the same product") {
  const problem p{{29, 29}, 7};
  for_each_mesh(std::array{1, 4, 6}, [&](auto policy, mesh_shape shape) {
    for (const spmm_options& o : every_option)
      check_even<decltype(policy)>(shape, p, o, shape.size() == 4 ? 12 : 50);
  });
}

TEST_CASE("fewer columns or rows than ranks, one column, an empty matrix") {
  for (const problem& p :
       {problem{{5, 5}, 2}, problem{{31, 31}, 1}, problem{{9, 9}, 3, {}}, problem{{1, 1}, 1}})
    for_each_mesh(std::array{6, 9, 27},
                  [&](auto policy, mesh_shape shape) { check_even<decltype(policy)>(shape, p, {}); });
}

TEST_CASE("rectangular A") {
  for (const problem& p : {problem{{23, 41}, 4}, problem{{40, 11}, 3}})
    for_each_mesh(std::array{4, 6, 8}, [&](auto policy, mesh_shape shape) {
      for (const spmm_options& o : every_option) check_even<decltype(policy)>(shape, p, o);
    });
}

TEST_CASE("blocks balanced by nonzeros, and given ones") {
  const problem p{{43, 43}, 6};
  std::vector<global_index> weights(43, 0);
  for (const auto& e : p.entries) ++weights[static_cast<std::size_t>(e.row)];
  for_each_mesh(std::array{4, 12}, [&](auto policy, mesh_shape shape) {
    using policy_type = decltype(policy);
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<host> m(world, shape);
      const blocking balanced = blocking::balanced(weights, shape, nesting::rows);
      std::vector<global_index> sizes(static_cast<std::size_t>(shape.row), 1);
      sizes.front() += 43 - shape.row;
      const blocking given = blocking::given(sizes, shape, nesting::rows);
      for (const spmm_options& o : every_option)
        check_product<policy_type>(m, p, balanced, balanced, false, o);
      check_product<policy_type>(m, p, balanced, given, true, {});
    });
  });
}

TEST_CASE("a symmetric A is its own transpose and stores it once") {
  std::vector<triplet<double>> entries;
  for (const auto& e : sparse_entries({30, 30})) entries.insert(entries.end(), {e, {e.col, e.row, e.value}});
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape shape) {
    using policy_type = decltype(policy);
    on_threads(shape.size(), [&](const communicator& world) {
      const mesh<host> m(world, shape);
      const auto mine = share(entries, m.rank(), m.size());
      const std::span<const triplet<double>> span(mine);
      const auto once =
          distribute<typename policy_type::sparse_layout, double>(m, {30, 30}, span, structure::symmetric);
      CHECK(once.local() == transposed(once).local());
      const auto x = generate<typename policy_type::dense_layout, double>(m, {30, 4}, dense_entry);
      CHECK(largest_difference(collect(spmm(transposed(once), x)), product(entries, {30, 30}, 4, true)) <
            1e-12);
    });
  });
}

TEST_CASE("operands that do not fit are named with their shapes") {
  expect_error<shape_error>("planned for A of 9 x 9 and X of 9 x 3 was given X of 8 x 3", [] {
    on_threads(2, [](const communicator& world) {
      const mesh<host> m(world, {2, 1, 1});
      const problem p{{9, 9}, 3};
      const blocking nine = blocking::even(9, m.shape(), nesting::rows);
      const auto a = distributed<row_1d>(m, p, nine, nine);
      const auto x = generate<row_1d::dense_layout, double>(m, {8, 3}, dense_entry);
      (void)spmm(a, x);
    });
  });
}

}  // namespace test_spmm
