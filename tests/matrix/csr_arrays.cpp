// SPDX-License-Identifier: Apache-2.0
// Sparse matrices over a caller's arrays: nothing is copied, products are those of owned blocks.
#include "partita/matrix/csr_arrays.hpp"

#include "partita/algebra/edge_spmm.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/transfer/distribute.hpp"
#include "partita/transfer/in_edges.hpp"
#include "support/matrices.hpp"

namespace test_csr_arrays {

using namespace test_support;
using host_sparse = sparse<double, dynamic_layout, host>;
using tiles = local::csr_tiles<double, host>;

constexpr std::array<int, 5> ranks_tried = {1, 2, 3, 4, 6};

/// The tiles of a block as a caller might have them, in three arrays.
struct stacked {
  std::vector<local_index> offsets{0}, columns;
  std::vector<double> values;

  explicit stacked(const tiles& block) {
    for (std::size_t t = 0; t < block.count(); ++t)
      for (const local::csr_slice<double>& part : block.parts(t))
        for (local_index i = 0; i < part.entries.rows; ++i) {
          for (local_index e = part.entries.offsets[i]; e < part.entries.offsets[i + 1]; ++e) {
            columns.push_back(part.entries.columns[e]);
            values.push_back(part.entries.values[e]);
          }
          offsets.push_back(static_cast<local_index>(columns.size()));
        }
  }
  local::csr_arrays<double> arrays() const { return {offsets, columns, values}; }
};

/// body(A, a view of the same blocks, policy) for every policy on every of its meshes.
void with_views(matrix_shape shape, auto body) {
  const std::vector<triplet<double>> all = sparse_entries(shape);
  on_each_mesh(ranks_tried, [&](const host_mesh& m, const policy& p) {
    const auto owner = distribute(m, p, shape, share(all, m));
    const stacked straight(*owner.local()), transpose(*transposed(owner).local());
    body(owner, host_sparse::view(m, p, shape, straight.arrays(), transpose.arrays()), p);
  });
}

template <class T, layout L>
void check_same(const host_dense<T, L>& a, const host_dense<T, L>& b) {
  CHECK(std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end()));
}

TEST_CASE("a view of tiles: the arrays are used where they are") {
  const std::vector<triplet<double>> all = sparse_entries({13, 13});
  on_mesh({1, 2, 1}, [&](const host_mesh& m) {
    const auto owner = distribute(m, feature_column, {13, 13}, share(all, m));
    const stacked mine(*owner.local());
    const std::size_t before = m.queue().meter()->current();
    const auto a = host_sparse::view(m, feature_column, {13, 13}, mine.arrays());
    spmm_plan<double, host> plan(a, feature_column.dense, blocking::even(4, m.shape(), nesting::cols));
    CHECK(m.queue().meter()->current() == before);
    for (const local::csr_slice<double>& part : a.local()->parts(0)) {
      CHECK(part.entries.offsets == mine.offsets.data());
      CHECK(part.entries.columns == mine.columns.data());
      CHECK(part.entries.values == mine.values.data());
    }
    CHECK_FALSE(transposed(a).is_stored());
  });
}

TEST_CASE("a view of tiles: products under every policy, with every way of exchanging rows") {
  for (const matrix_shape shape : {matrix_shape{23, 23}, matrix_shape{5, 31}})
    with_views(shape, [&](const auto& owner, const auto& view, const policy& p) {
      const auto& m = owner.mesh();
      const auto x = generate<double>(m, p.dense, {shape.cols, 5}, field(0));
      const auto y = generate<double>(m, p.dense, {shape.rows, 5}, field(1));
      for (const stationary kept : {stationary::a, stationary::c})
        for (const row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware}) {
          check_same(spmm(view, x, {kept, rows}), spmm(owner, x, {kept, rows}));
          check_same(spmm(transposed(view), y, {kept, rows}), spmm(transposed(owner), y, {kept, rows}));
        }
    });
}

TEST_CASE("a view of tiles: values on its entries, and its rows whole") {
  with_views({23, 23}, [](const auto& owner, const auto& view, const policy& p) {
    const auto& m = owner.mesh();
    const auto x = generate<double>(m, p.dense, {23, 6}, field(0)),
               y = generate<double>(m, p.dense, {23, 6}, field(1));
    for (const row_exchange rows : {row_exchange::full, row_exchange::sparsity_aware}) {
      const auto product = [&](const host_sparse& a) {
        edge_matrix<double, host> e(a, 2);
        sddmm_plan(a, x, 2, rows)(y, x, e);
        host_dense<> z(m, p.dense, x.row_blocking(), x.col_blocking());
        edge_spmm_plan(a, x, 2, rows)(e, x, z);
        return z;
      };
      check_same(product(view), product(owner));
    }
    const transfer::in_edges<double, host> whole(view), expected(owner);
    CHECK(std::equal(whole.own_columns().begin(), whole.own_columns().end(), expected.own_columns().begin(),
                     expected.own_columns().end()));
  });
}

TEST_CASE("a view of tiles: it and a matrix that owns its blocks can stand on different ranks") {
  const std::vector<triplet<double>> all = sparse_entries({19, 19});
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto owner = distribute(m, grid_2d, {19, 19}, share(all, m));
    const stacked mine(*owner.local());
    const auto a = m.rank() % 3 == 0 ? owner : host_sparse::view(m, grid_2d, {19, 19}, mine.arrays());
    const auto x = generate<double>(m, grid_2d.dense, {19, 3}, field(0));
    check_same(spmm(a, x, {stationary::c, row_exchange::full}),
               spmm(owner, x, {stationary::c, row_exchange::full}));
  });
}

TEST_CASE("a view of tiles: the transpose of a symmetric matrix is itself, and an owner is held") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const std::vector<local_index> offsets = {0, 1, 2}, columns = {1, 0};
    auto values = std::make_shared<std::vector<double>>(2, 3.0);
    const std::weak_ptr<std::vector<double>> watched = values;
    {
      local::csr_arrays<double> arrays{offsets, columns, *values, std::move(values)};
      const auto a = host_sparse::view(m, row_1d, {2, 2}, arrays, arrays);
      arrays.owner.reset();
      CHECK(transposed(a).local() == a.local());
      CHECK(!watched.expired());
      check_equals(spmm(a, generate<double>(m, row_1d.dense, {2, 1}, [](auto i, auto) { return i; })),
                   std::vector<double>{3, 0}, 0, "A X");
    }
    CHECK(watched.expired());
  });
}

TEST_CASE("a view of tiles: arrays that are none are refused") {
  using list = std::vector<local_index>;
  const auto refused = [](const std::string& why, const list& offsets, const list& columns,
                          std::size_t values, std::size_t most = base::max_tile_entries) {
    expect_error<shape_error>({2, 1, 1}, why, [&](const host_mesh& world) {  // two tiles of 2 x 2 and 2 x 1
      const host_mesh m(world.world(), world.shape(), world.queue(), most);
      const std::vector<double> numbers(values);
      const matrix_shape shape{4, 3};
      host_sparse::view(m, row_1d, shape, {offsets, columns, numbers});
    });
  };
  refused("a view of 2 tiles of 2 rows has 5 offsets, not 3", {0, 0, 0}, {}, 0);
  refused("the offsets of a view begin with 1, not with 0", {1, 1, 1, 1, 1}, {}, 0);
  refused("row 1 of tile 0 of a view ends at 1, before it begins at 2", {0, 2, 1, 2, 2}, {0, 1}, 2);
  refused("a view with offsets up to 2 has 2 columns and 3 values", {0, 2, 2, 2, 2}, {0, 1}, 3);
  refused("a view with offsets up to 2 has 1 columns and 2 values", {0, 2, 2, 2, 2}, {0}, 2);
  refused("row 0 of tile 1 of a view has column 1 in a tile of 1 columns", {0, 1, 1, 2, 2}, {1, 1}, 2);
  refused("row 1 of tile 0 of a view has column -1 in a tile of 2 columns", {0, 0, 1, 1, 1}, {-1}, 1);
  refused("row 0 of tile 0 of a view has column 0 after column 1", {0, 2, 2, 2, 2}, {1, 0}, 2);
  refused("row 0 of tile 0 of a view has column 1 after column 1", {0, 2, 2, 2, 2}, {1, 1}, 2);
  refused("a view of a sparse block has no more than 2 entries, not 3", {0, 2, 2, 3, 3}, {0, 1, 0}, 3, 2);
}

}  // namespace test_csr_arrays
