// SPDX-License-Identifier: Apache-2.0
// Dense matrices from a function or one rank's values, and back; what sparse ones refuse.
#include "partita/transfer/distribute.hpp"

#include "support/matrices.hpp"

namespace test_distribute {

using namespace test_support;

TEST_CASE("generate, distribute from any root, collect") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const mesh<host>& m) {
      const matrix_shape size{10, 7};
      const std::vector<double> all = test_support::whole(size, field(4)), nothing;
      for_each_layout([&](layout l) {
        m.ledger().clear();
        const auto made = generate<double>(m, l, size, field(4));
        CHECK(m.ledger().entries().empty());
        CHECK(made.shape() == size);
        check_equals(made, field(4), 0, "generate");

        for (const int root : {0, m.size() / 2, m.size() - 1}) {
          const bool here = m.rank() == root;
          m.ledger().clear();
          const auto given = distribute(m, l, size, here ? all : nothing, root);
          check_equals(given, field(4), 0, "distribute");
          const auto block = static_cast<global_index>(given.values().size());
          same(heard(m), here || block == 0 ? traffic{} : traffic{block, 1}, "distribute");
        }

        m.ledger().clear();
        CHECK(collect(made) == all);
        same(heard(m),
             test_support::redistributed(m.shape(), m.at(), made.row_blocking(), made.col_blocking(), l,
                                         replicated),
             "collect");
      });
    });
}

TEST_CASE("generate: with blockings of one's own") {
  for (const mesh_shape shape : {mesh_shape{2, 3, 1}, mesh_shape{2, 2, 2}})
    on_mesh(shape, [](const mesh<host>& m) {
      const std::vector<global_index> weights = {3, 0, 3, 40, 3, 0, 3, 0, 3};
      const std::vector<global_index> widths{0, 1, 2};
      const blocking rows = blocking::balanced(weights, m.shape(), nesting::rows);
      const blocking cols =
          blocking::given({widths.begin(), widths.begin() + m.shape().col}, m.shape(), nesting::cols);
      for_each_layout([&](layout l) {
        const auto x = generate<double>(m, l, rows, cols, field(5));
        CHECK(x.row_blocking() == rows);
        CHECK(x.col_blocking() == cols);
        check_equals(x, field(5), 0, "generate");
        CHECK(collect(x) == test_support::whole({rows.size(), cols.size()}, field(5)));
      });
    });
}

TEST_CASE("a policy on a mesh with ranks that it does not use is refused") {
  expect_error<mesh_error>("policy feature_column does not use the row axis of mesh 4x1x1", [] {
    on_mesh({4, 1, 1}, [](const host_mesh& m) {
      distribute(m, feature_column, {5, 5}, std::vector<triplet<double>>{});
    });
  });
}

TEST_CASE("distribute: layouts that no sparse matrix has, and blockings of another mesh, are refused") {
  const std::vector<triplet<double>> nothing;
  const auto on_2x2 = [](auto act) { on_mesh({2, 2, 1}, [&](const host_mesh& m) { act(m); }); };
  for (const layout l : {layout{axis::row | axis::col, {}}, layout{axis::depth, {}}, layout{{}, axis::row}})
    expect_error<shape_error>("col and depth only its columns; the layout is " + to_string(l), [&] {
      on_2x2([&](const host_mesh& m) { distribute(m, l, {5, 5}, nothing, symmetry::one_way); });
    });
  expect_error<shape_error>("blockings of mesh 4x1x1 given to a sparse matrix on mesh 2x2x1", [&] {
    on_2x2([&](const host_mesh& m) {
      const blocking b = blocking::even(5, {4, 1, 1}, nesting::rows);
      distribute(m, row_1d.sparse, b, b, nothing);
    });
  });
}

TEST_CASE("distribute: the wrong number of values") {
  expect_error<shape_error>("a matrix of 4 x 3 cannot be made from 11 values", [] {
    on_mesh({2, 2, 1}, [](const mesh<host>& m) {
      const std::vector<double> values(11);
      distribute<grid_2d.dense>(m, {4, 3}, values, m.size() - 1);
    });
  });
  expect_error<shape_error>("a dimension of -3", [] {
    on_mesh({2, 1, 1}, [](const mesh<host>& m) { generate<row_1d.dense, double>(m, {4, -3}, field(1)); });
  });
}

TEST_CASE("distribute: a matrix that is too large is refused") {
  expect_error<shape_error>("the number of rows of a sparse block is 1000000000000000", [] {
    on_mesh({1, 1, 1}, [](const host_mesh& m) {
      const std::vector<triplet<double>> entries{{0, 2, 1}};
      distribute(m, row_1d.sparse, matrix_shape{1000000000000000, 3}, entries);
    });
  });
}

TEST_CASE("distribute: an entry outside the matrix is named") {
  const auto refused = [](const triplet<double>& bad, const std::string& name) {
    expect_error<shape_error>("entry " + name + " is outside a matrix of 4 x 6 (given by rank 2)", [&] {
      on_mesh({2, 1, 2}, [&](const host_mesh& m) {
        const std::vector<triplet<double>> entries{{0, 0, 1}, {3, 5, 1}, bad};
        distribute(m, replicated_1_5d.sparse, {4, 6}, share(entries, m));
      });
    });
  };
  refused({4, 0, 1}, "(4, 0)");
  refused({0, 6, 1}, "(0, 6)");
  refused({-1, 2, 1}, "(-1, 2)");
  refused({2, -1, 1}, "(2, -1)");
}

}  // namespace test_distribute
