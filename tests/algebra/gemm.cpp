// SPDX-License-Identifier: Apache-2.0
// Products of distributed dense matrices against tests/reference and predictions, in every layout.
#include "partita/algebra/gemm.hpp"

#include "partita/algebra/reductions.hpp"
#include "support/products.hpp"

namespace test_gemm {

using namespace test_support;

TEST_CASE("gemm: every layout of A, B and C") {
  on_mesh({2, 2, 2}, [](const host_mesh& m) {
    every_pair(m, [](std::size_t a, std::size_t b, std::size_t c) {
      return !sanitized || (a + 2 * b + 3 * c) % 61 == 0;
    });
  });
}

TEST_CASE("gemm: every pair of layouts of A and B on every mesh, and each layout of C") {
  for (const mesh_shape shape : every_small_mesh())
    if (!(shape == mesh_shape{2, 2, 2}))
      on_mesh(shape, [](const host_mesh& m) {
        every_pair(m, [](std::size_t a, std::size_t b, std::size_t c) {
          return (a + 3 * b) % 27 == c && (!sanitized || (a + b) % 11 == 0);
        });
      });
}

TEST_CASE("gemm: the chosen schedule is the one whose busiest rank receives least") {
  for (const mesh_shape shape : {mesh_shape{2, 1, 1}, mesh_shape{2, 3, 1}, mesh_shape{2, 2, 2}})
    on_mesh(shape, [](const host_mesh& m) {
      const std::vector<layout> layouts = every_layout();
      for (std::size_t i = 0; i < products.size(); i += sanitized ? 4 : 1) {
        const dense_product& p = products[i];
        const auto a = generate<double>(m, layouts[7 * i % 27], p.a(), field(1)),
                   b = generate<double>(m, layouts[(11 * i + 3) % 27], p.b(), field(2));
        auto c = generate<double>(m, layouts[(5 * i + 1) % 27], p.c(), field(3));
        with_operands(p, a, b, [&](const auto& left, const auto& right) {
          const auto busiest = [&](const gemm_options& options) {
            gemm_plan multiply(left, right, c, options);
            m.ledger().clear();
            multiply(left, right, c);
            return m.world().all_reduce(heard(m).words, reduction::max);
          };
          global_index least = std::numeric_limits<global_index>::max();
          for (const partition::gemm_schedule& s : every_schedule()) least = std::min(least, busiest({s}));
          CHECK(busiest({}) == least);
        });
      }
    });
}

TEST_CASE("gemm: blockings of one's own") {
  for (const mesh_shape shape : {mesh_shape{2, 2, 1}, mesh_shape{3, 2, 2}})
    on_mesh(shape, [&](const host_mesh& m) {
      const std::vector<global_index> weights = {1, 1, 20, 1, 1, 0, 0, 1, 1, 1, 4, 1, 1};
      const blocking heavy = blocking::balanced(weights, m.shape(), nesting::rows),
                     even = blocking::even(13, m.shape(), nesting::rows),
                     inner_cols = blocking::given({9, 2}, m.shape(), nesting::cols),
                     inner_rows =
                         blocking::balanced(std::vector<global_index>(11, 1), m.shape(), nesting::rows),
                     out = blocking::given({0, 6}, m.shape(), nesting::cols);
      const dense_product p{{13, 6, 11}, false, false, 1, 2};
      const std::vector<double> expected = p.expected();
      for_each_layout([&](layout l) {
        const auto a = generate<double>(m, l, heavy, inner_cols, field(1)),
                   b = generate<double>(m, {axis::row, axis::col}, inner_rows, out, field(2));
        auto c = generate<double>(m, {axis::row | axis::depth, axis::col}, even, out, field(3));
        CHECK(multiplies(p, a, b, c, old_values(c, p), expected, {}, 2));
      });
    });
}

TEST_CASE("gemm: stages along k keep the buffers within the memory given") {
  on_mesh({2, 3, 1}, [](const host_mesh& m) {
    const layout grid{axis::row, axis::col};
    const dense_product p{{60, 48, 90}, false, false, 1, 1};
    const auto a = generate<double>(m, grid, p.a(), field(1)), b = generate<double>(m, grid, p.b(), field(2));
    auto c = generate<double>(m, grid, p.c(), field(3));
    const std::vector<double> before = old_values(c, p), expected = p.expected();
    const partition::gemm_schedule summa{axis::row, axis::col, {}};
    traffic whole;
    global_index stages = 0;
    for (const std::size_t bytes :
         {std::size_t{1} << 20, std::size_t{16000}, std::size_t{4000}, std::size_t{1300}}) {
      const std::size_t held = m.queue().meter()->current();
      m.queue().meter()->restart_peak();
      gemm_plan multiply(a, b, c, {summa, bytes});
      CHECK(multiply.buffer_bytes() <= bytes);
      CHECK(multiplies(p, a, b, c, before, expected, {summa, bytes}, 2));
      CHECK(m.queue().meter()->peak() - held <= 2 * bytes);  // of two plans
      CHECK(multiply.stages().count > stages);
      stages = multiply.stages().count;
      if (stages == 1) whole = multiply.predicted();
      CHECK(multiply.predicted().words == whole.words);
    }
    CHECK(stages > 8);
  });
  expect_error<error>({2, 3, 1}, "gemm: C of 60 x 48 needs at least", [](const host_mesh& m) {
    const auto a = generate<grid_2d.dense, double>(m, {60, 90}, field(1)),
               b = generate<grid_2d.dense, double>(m, {90, 48}, field(2));
    gemm(a, b, {.memory = 100});
  });
}

TEST_CASE("gemm: stages along j and i, where partial sums exceed the memory") {
  on_mesh({2, 3, 1}, [](const host_mesh& m) {
    const layout grid{axis::row, axis::col};
    struct stationary {
      partition::gemm_schedule schedule;
      partition::gemm_index along;
      layout c;
    };
    for (const stationary& s :
         {stationary{{axis::row, {}, axis::col}, partition::gemm_index::j, grid},
          stationary{{axis::row, {}, axis::col}, partition::gemm_index::j, {axis::row, {}}},
          stationary{{axis::row, {}, axis::col}, partition::gemm_index::j, {axis::row | axis::col, {}}},
          stationary{{{}, axis::col, axis::row}, partition::gemm_index::i, grid}})
      for (const double beta : {0.0, 1.5})
        for (const bool transpose : {false, true}) {
          const dense_product p{{60, 48, 90}, transpose, transpose, 1, beta};
          const layout l = transpose ? layout{axis::col, axis::row} : grid;
          const auto a = generate<double>(m, l, p.a(), field(1)), b = generate<double>(m, l, p.b(), field(2));
          auto c = generate<double>(m, s.c, p.c(), field(3));
          const std::vector<double> before = old_values(c, p), expected = p.expected();
          const bool sums_only = s.c == layout{axis::row, {}};  // which are in C, whatever the memory
          const gemm_options options{s.schedule, sums_only ? 9000 : 6000};
          with_operands(p, a, b, [&](const auto& left, const auto& right) {
            const gemm_plan multiply(left, right, c, options);
            CHECK(multiply.buffer_bytes() <= *options.memory);
            CHECK(multiply.stages().count > 1);
            CHECK((sums_only || multiply.stages().along == s.along));
            CHECK(multiply.predicted().words == gemm_plan(left, right, c, {s.schedule}).predicted().words);
          });
          CHECK(multiplies(p, a, b, c, before, expected, options, 2));
        }
  });
}

TEST_CASE("gemm: planned and run once, in the layout of the operands") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      const std::vector<double> expected = dense_product{{14, 5, 9}}.expected();
      const auto w = generate<replicated, double>(m, {9, 5}, field(2));
      for_each_layout([&](layout l) {
        const auto x = generate<double>(m, l, {14, 9}, field(1));
        const auto y = gemm(x, w);
        check_equals(y, expected, 1e-13, "X W");
        CHECK(y.layout() == l);
        const auto g = generate<double>(m, {axis::depth, axis::col}, {14, 5}, field(2));
        const dense_product gradient{{9, 5, 14}, true};
        check_equals(gemm(transposed(x), g), gradient.expected(), 1e-13, "X^T G");
        check_equals(inner(x, g), gradient.expected(), 1e-13, "inner");
      });
      const auto a = generate<grid_2d.dense, float>(m, {14, 9}, field(1));
      const dense<float, grid_2d.dense, host> c =
          gemm(a, generate<grid_2d.dense, float>(m, {9, 5}, field(2)));
      check_equals(c, std::vector<float>(expected.begin(), expected.end()), 1e-6, "floats");
      auto sum = generate<grid_2d.dense, float>(m, {14, 5}, [](auto, auto) { return 1; });
      gemm(-1, c, generate<replicated, float>(m, {5, 5}, [](auto i, auto j) { return i == j; }), 1, sum);
      check_equals(
          sum,
          [&](global_index i, global_index j) {
            return 1 - static_cast<float>(expected[static_cast<std::size_t>(i * 5 + j)]);
          },
          1e-6, "1 - C I");
    });
}

TEST_CASE("gemm: explained in a sentence") {
  on_mesh({2, 2, 2}, [](const host_mesh& m) {
    const auto a = generate<double>(m, {axis::row | axis::col, axis::depth}, {8, 8}, field(1)),
               b = generate<double>(m, {axis::depth, axis::col | axis::row}, {8, 8}, field(2));
    const auto c = generate<double>(m, {axis::row | axis::depth, axis::col}, {8, 8}, field(3));
    CHECK(gemm_plan(a, b, c, {partition::gemm_schedule{axis::row, axis::col, axis::depth}}).explain() ==
          "C of 8 x 8 with i by row, j by col, k by depth: A is gathered along col, B is gathered along row, "
          "partial sums are reduce-scattered along depth; the busiest rank receives 24 elements and holds 64 "
          "in buffers");
  });
}

TEST_CASE("gemm: operands that do not fit are named") {
  const auto given = [](matrix_shape a, matrix_shape b, matrix_shape c) {
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      const auto planned_a = generate<grid_2d.dense, double>(m, {7, 5}, field(1)),
                 planned_b = generate<grid_2d.dense, double>(m, {5, 3}, field(2)),
                 other_a = generate<grid_2d.dense, double>(m, a, field(1)),
                 other_b = generate<grid_2d.dense, double>(m, b, field(2));
      auto planned_c = generate<grid_2d.dense, double>(m, {7, 3}, field(3)),
           other_c = generate<grid_2d.dense, double>(m, c, field(3));
      gemm_plan(planned_a, planned_b, planned_c)(other_a, other_b, other_c);
    });
  };
  CHECK_NOTHROW(given({7, 5}, {5, 3}, {7, 3}));
  expect_error<shape_error>(
      "gemm planned for A of 7 x 5, rows cut by row, columns by col, was given A of 8 x 5, rows cut by row, "
      "columns by col; shapes",
      [&] {
        given({8, 5}, {5, 3}, {7, 3});
      });
  expect_error<shape_error>("gemm planned for B of 5 x 3", [&] { given({7, 5}, {3, 5}, {7, 3}); });
  expect_error<shape_error>("was given C of 7 x 4, rows", [&] { given({7, 5}, {5, 3}, {7, 4}); });
  const auto refused = [](std::string_view part, auto act) {
    expect_error<shape_error>({1, 2, 1}, part, [&](const host_mesh& m) {
      auto a = generate<grid_2d.dense, double>(m, {7, 5}, field(1)),
           b = generate<grid_2d.dense, double>(m, {4, 3}, field(2));
      act(m, a, b);
    });
  };
  refused("gemm: A of 7 x 5 cannot be multiplied by B of 4 x 3", [](auto&, auto& a, auto& b) { gemm(a, b); });
  refused("gemm: the transpose of A of 7 x 5 cannot be multiplied by the transpose of B of 4 x 3",
          [](auto&, auto& a, auto& b) { gemm(transposed(a), transposed(b)); });
  refused("gemm: A of 7 x 5 times the transpose of B of 7 x 5 is 7 x 7, not C of 4 x 3",
          [](auto&, auto& a, auto& b) { gemm(1, a, transposed(a), 0, b); });
  refused("gemm: C of 7 x 5 must not be the memory of A or B", [](auto& m, auto& a, auto&) {
    gemm(1, a, generate<replicated, double>(m, {5, 5}, field(2)), 0, a);
  });
  refused("an axis partitions one of the three indices, not two as in i by row, j by row, k by none",
          [](auto&, auto& a, auto&) {
            gemm(a, transposed(a), {partition::gemm_schedule{axis::row, axis::row, {}}});
          });
  refused("gemm: A of 7 x 5 and B of 5 x 3 are not on one mesh", [](auto& m, auto& a, auto&) {
    const host_mesh other(m.world(), m.shape());
    gemm(a, generate<replicated, double>(other, {5, 3}, field(2)));
  });
  refused("gemm: A of 7 x 5 is on mesh 1x2x1, B of 5 x 3 on mesh 2x1x1", [](auto& m, auto& a, auto&) {
    const host_mesh other(m.world(), {2, 1, 1});
    gemm(a, generate<replicated, double>(other, {5, 3}, field(2)));
  });
}

}  // namespace test_gemm
