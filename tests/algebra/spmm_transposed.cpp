// SPDX-License-Identifier: Apache-2.0
// A^T X from the blocks of A alone: right, with the closed form's words, in half the memory.

#include "partita/algebra/in_edge_sddmm.hpp"
#include "partita/algebra/max_aggregate.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/transfer/assign_values.hpp"
#include "support/edge_matrices.hpp"
#include "support/spmm_problems.hpp"

namespace test_spmm_transposed {

using namespace test_support;

using host_sparse = sparse<double, dynamic_layout, host>;

using problem = spmm_problem;

auto one_way(const host_mesh& m, const policy& named, const problem& p, const blocking& rows,
             const blocking& cols) {
  return distribute(m, named, rows, cols, share(p.entries, m), symmetry::one_way);
}
auto one_way(const host_mesh& m, const policy& named, const problem& p) {
  return distribute(m, named, p.shape, share(p.entries, m), symmetry::one_way);
}

TEST_CASE("A X and A^T X for wide, tall and few, in blocks of their own, on every policy and mesh") {
  for (const problem& p : {problem{{23, 9}, 5}, problem{{9, 23}, 4}, problem{{5, 2}, 3}})
    on_each_mesh(std::array{1, 2, 3, 4, 6, 8, 9, 12}, [&](const host_mesh& m, const policy& named) {
      const auto a = one_way(m, named, p, blocking::even(p.shape.rows, m.shape(), nesting::rows),
                             growing(p.shape.cols, m.shape()));
      check_product(a, named.dense, p, false, {});
      check_product(transposed(a), named.dense, p, true, {});
      check_product(transposed(transposed(a)), vertex_rows, p, false, {});
      check_product(transposed(a), vertex_rows, p, true, {});
    });
}

TEST_CASE("every option gives A^T X, and tiles in parts of few entries too") {
  const problem p{{29, 37}, 7};
  for_each_mesh(std::array{4, 6, 12}, [&](const policy& named, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      for (const std::size_t most : {base::max_tile_entries, std::size_t{25}}) {
        const host_mesh m(world, shape, device_queue<host>(), most);
        const auto a = one_way(m, named, p, growing(p.shape.rows, shape), growing(p.shape.cols, shape));
        for (const spmm_options& o : every_option) {
          check_product(transposed(a), named.dense, p, true, o);
          const spmm_plan plan(transposed(a), named.dense, blocking::even(7, shape, nesting::cols), o);
          if (o.rows != row_exchange::automatic) CHECK(plan.options().rows == o.rows);
        }
      }
    });
  });
}

TEST_CASE("every pair of layouts that multiply") {
  const problem p{{29, 37}, 7};
  for (const mesh_shape shape : {mesh_shape{2, 2, 2}, {3, 2, 1}, {1, 3, 2}, {3, 1, 2}})
    on_mesh(shape, [&](const host_mesh& m) {
      int pairs = 0;
      for (const layout l : every_layout()) {
        if (!partition::is_sparse_layout(l)) continue;
        const auto a = distribute(m, l, p.shape, share(p.entries, m), symmetry::one_way);
        for (const layout x : every_layout()) {
          if (!partition::multipliable(l, x)) continue;
          ++pairs;
          for (const spmm_options& o : every_option) check_product(transposed(a), x, p, true, o);
        }
      }
      CHECK(pairs == 18);
    });
}

TEST_CASE("alpha A^T X + beta Y, where the operands lie and where they travel") {
  const problem p{{29, 37}, 7};
  const std::vector<double> once = product(p.entries, p.shape, p.width, true);
  on_usual_meshes(std::array{1, 4, 12}, [&](const host_mesh& m, const policy& named) {
    const auto a = one_way(m, named, p);
    for (const spmm_options& o : every_option)
      for (const layout l : {named.dense, vertex_rows}) {
        const auto x = generate<double>(m, l, {p.shape.rows, p.width}, field(0));
        auto y = generate<double>(m, l, {p.shape.cols, p.width}, [](auto, auto) { return NAN; });
        spmm_plan plan(transposed(a), x, o);
        plan(-0.75, x, 0, y);
        run_as_predicted(m, plan, 2, x, 0.5, y);
        std::vector<double> expected = once;
        for (double& v : expected) v = 2 * v + 0.5 * (-0.75 * v);
        CHECK(largest_difference(collect(y), expected) < 1e-12);
      }
  });
}

TEST_CASE("single precision") {
  const problem p{{40, 23}, 6};
  std::vector<triplet<float>> entries;
  for (const auto& e : p.entries) entries.push_back({e.row, e.col, static_cast<float>(e.value)});
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto a = distribute(m, grid_2d, p.shape, share(entries, m), symmetry::one_way);
    const auto x = generate<float>(m, grid_2d.dense, {40, 6}, field(0));
    const std::vector<float> y = collect(spmm(transposed(a), x));
    CHECK(largest_difference(std::vector<double>(y.begin(), y.end()),
                             product(p.entries, p.shape, p.width, true)) < 1e-5);
  });
}

TEST_CASE("what travels: as much as with a stored transpose, where blocks are even and whole, or less") {
  const problem p{{48, 48}, 12};
  for_each_mesh(std::array{4, 8, 12}, [&](const policy& named, mesh_shape shape) {
    if (48 % shape.size() != 0 || 12 % shape.col != 0) return;
    on_mesh(shape, [&](const host_mesh& m) {
      const auto both = distribute(m, named, p.shape, share(p.entries, m));
      const auto half = one_way(m, named, p);
      const auto words = [&](const auto& a) {
        return spmm_plan(transposed(a), named.dense, blocking::even(12, shape, nesting::cols),
                         {stationary::a, row_exchange::full})
            .predicted()
            .words;
      };
      if (shape.depth > 1 && !named.dense.rows.contains(axis::depth))
        CHECK(words(half) < words(both));  // an all-gather along depth for an all-reduce
      else
        CHECK(words(half) == words(both));
    });
  });
}

TEST_CASE("what travels: of needed rows, the nonempty columns of the other ranks' tiles") {
  const problem p{{33, 21}, 5};
  on_mesh({4, 1, 1}, [&](const host_mesh& m) {
    const auto a = one_way(m, row_1d, p);
    const interval mine = a.col_blocking().block(axis::row, m.at());
    std::vector<std::vector<char>> named(4, std::vector<char>(21, 0));
    for (const auto& e : p.entries)
      named[static_cast<std::size_t>(a.row_blocking().owner(axis::row, e.row))]
           [static_cast<std::size_t>(e.col)] = 1;
    global_index rows = 0;
    for (int r = 0; r < 4; ++r)
      for (global_index j = mine.begin; j < mine.end; ++j)
        if (r != m.rank()) rows += named[static_cast<std::size_t>(r)][static_cast<std::size_t>(j)];
    const spmm_plan plan(transposed(a), row_1d.dense, blocking::even(5, m.shape(), nesting::cols),
                         {stationary::automatic, row_exchange::sparsity_aware});
    CHECK(plan.predicted().words == rows * 5);
  });
}

TEST_CASE("A and plans for A X and A^T X take half the memory of a stored transpose") {
  const problem p{{300, 300}, 2};
  for (const auto rows : {row_exchange::full, row_exchange::sparsity_aware})
    for (const policy& named : {row_1d, grid_2d, split_3d})
      on_mesh(default_mesh(named, 4), [&](const host_mesh& m) {
        const auto bytes = [&](symmetry kind) {
          const auto before = m.queue().meter()->current();
          const auto a = distribute(m, named, p.shape, share(p.entries, m), kind);
          const auto x = generate<double>(m, named.dense, {300, 2}, field(0));
          auto y = generate<double>(m, named.dense, {300, 2}, field(0));
          spmm_plan forward(a, x, {stationary::a, rows}), backward(transposed(a), x, {stationary::a, rows});
          forward(x, y);
          backward(x, y);
          return static_cast<double>(m.queue().meter()->current() - before);
        };
        CHECK(bytes(symmetry::one_way) < 0.6 * bytes(symmetry::general));
      });
}

TEST_CASE("new values are seen through either matrix, and are given to either") {
  const problem p{{23, 31}, 4};
  on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const policy& named) {
    auto a = one_way(m, named, p);
    auto t = transposed(a);
    const auto x = generate<double>(m, named.dense, {23, 4}, field(0));
    dense<double, dynamic_layout, host> y(m, named.dense, t.row_blocking(), x.col_blocking());
    spmm_plan plan(t, x);
    const auto check = [&](double factor) {
      plan(x, y);
      std::vector<double> expected = product(p.entries, p.shape, p.width, true);
      for (double& v : expected) v *= factor;
      CHECK(largest_difference(collect(y), expected) < 1e-12);
    };
    assign_values(a, [](auto, auto, double v) { return 2 * v; });
    check(2);
    assign_values(t, [](auto, auto, double v) { return 2 * v; });
    check(4);
    std::vector<triplet<double>> swapped;
    for (const auto& e : share(p.entries, m)) swapped.push_back({e.col, e.row, -e.value});
    assign_values(t, swapped);
    check(-1);
  });
}

TEST_CASE("a view without a transpose is read the other way in place") {
  const std::vector<local_index> offsets{0, 2, 3}, columns{0, 2, 2};
  const std::vector<double> values{1, 2, -3};
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    const auto a = host_sparse::view(m, row_1d, {2, 4}, {offsets, columns, values});
    CHECK(a.kind() == symmetry::one_way);
    CHECK(a.is_stored());
    CHECK(transposed(a).kind() == symmetry::one_way);
    CHECK(!transposed(a).is_stored());
    CHECK(transposed(a).shape() == matrix_shape{4, 2});
    CHECK(transposed(transposed(a)).local() == a.local());
    const auto x = generate<double>(m, row_1d.dense, {2, 1}, [](auto i, auto) { return i + 1.0; });
    CHECK(collect(spmm(transposed(a), x)) == std::vector<double>{1, 0, -4, 0});
    const sparse<double, row_1d.sparse, host> typed(a);
    CHECK(collect(spmm(transposed(typed), x)) == std::vector<double>{1, 0, -4, 0});
  });
}

TEST_CASE("what needs entries of A^T names itself, and how to distribute A") {
  const problem p{{9, 9}, 4};
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const auto t = transposed(one_way(m, row_1d, p));
    const auto x = generate<double>(m, row_1d.dense, {9, 4}, field(0));
    const auto refused = [](const char* operation, auto act) {
      expect_error<error>(std::string(operation) +
                              ": a matrix of 9 x 9 has no entries of its own: it is the transpose of one "
                              "that was distributed as symmetry::one_way",
                          act);
    };
    refused("edge_matrix", [&] { host_edges(t, 2); });
    refused("edge_spmm_plan", [&] { edge_spmm_plan(t, x); });
    refused("sddmm_plan", [&] { sddmm_plan(t, x); });
    refused("in_edges", [&] { transfer::in_edges<double, host>{t}; });
    refused("max_aggregation", [&] { max_aggregation<double, host>(t, 4); });
    refused("local", [&] { (void)t.local(); });
  });
}

TEST_CASE("products over edges of rectangular A, and what has no rectangular meaning") {
  const problem p{{23, 9}, 4};
  for (const problem& q : {p, problem{{9, 23}, 4}})
    on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const policy& named) {
      const auto a = distribute(m, named, blocking::even(q.shape.rows, m.shape(), nesting::rows),
                                growing(q.shape.cols, m.shape()), share(q.entries, m));
      const blocking features = blocking::even(4, m.shape(), nesting::cols);
      const auto x = generate<double>(m, named.dense, a.col_blocking(), features, field(0));
      const auto y = generate<double>(m, named.dense, a.row_blocking(), features, field(1));
      edge_spmm_plan multiply(a, x, 1);
      host_edges e(a, 1), dots(a, 1);
      fill_edges(e, [](auto v, auto u, auto) { return std::cos(static_cast<double>(v + 2 * u)); });
      auto ex = generate<double>(m, named.dense, a.row_blocking(), features, field(1));
      multiply(e, x, ex);
      CHECK(largest_difference(collect(ex), product(q.entries, q.shape, 4, false)) < 1e-12);
      auto ey = generate<double>(m, named.dense, a.col_blocking(), features, field(1));
      algebra::transposed_edge_spmm_plan<double, host> back(multiply);
      back(e, generate<double>(m, named.dense, a.row_blocking(), features, field(0)), ey);
      CHECK(largest_difference(collect(ey), product(q.entries, q.shape, 4, true)) < 1e-12);
      sddmm_plan sample(multiply);
      sample(y, x, dots);
      CHECK(largest_error(dots, [](auto v, auto u, auto) {
              double dot = 0;
              for (global_index j = 0; j < 4; ++j) dot += element(v, j, 1) * element(u, j, 0);
              return dot;
            }) < 1e-12);
    });
  expect_error<shape_error>(
      {2, 1, 1}, "in_edges: the rows and columns of A of 23 x 9 are the same vertices",
      [&](const host_mesh& m) {
        transfer::in_edges<double, host>{distribute(m, row_1d, p.shape, share(p.entries, m))};
      });
}

}  // namespace test_spmm_transposed
