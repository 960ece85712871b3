// SPDX-License-Identifier: Apache-2.0
// The known algorithms among the schedules: what they receive and what their buffers hold, in numbers.
#include "partita/algebra/gemm_plan.hpp"

#include "partita/algebra/reductions.hpp"
#include "partita/partition/gemm_grid.hpp"
#include "support/products.hpp"

namespace test_gemm_plan {

using namespace test_support;

// Every row of the table "Known algorithms" in docs/gemm.md.
TEST_CASE("gemm: known algorithms, words and buffers in numbers") {
  constexpr global_index m = 48, n = 24, k = 72;
  struct algorithm {
    const char* name;
    mesh_shape mesh;
    layout a, b, c;
    partition::gemm_schedule schedule;
    global_index words, buffers;  ///< elements, on the busiest rank
    bool transposed_a = false;
  };
  using enum axis;
  for (const algorithm& g :
       {algorithm{"1D, B gathered",
                  {6, 1, 1},
                  {row, {}},
                  {row, {}},
                  {row, {}},
                  {row, {}, {}},
                  k * n * 5 / 6,
                  k * n},
        algorithm{
            "1D, C summed", {6, 1, 1}, {{}, row}, {row, {}}, {row, {}}, {{}, {}, row}, m * n * 5 / 6, m * n},
        algorithm{"X^T Y", {6, 1, 1}, {row, {}}, {row, {}}, {}, {{}, {}, row}, 2 * m * n * 5 / 6, 0, true},
        algorithm{"2D, C stationary",
                  {2, 3, 1},
                  {row, col},
                  {row, col},
                  {row, col},
                  {row, col, {}},
                  m * k / 2 * 2 / 3 + k * n / 3 / 2,
                  2 * m * k / 2 + k * n / 3},
        algorithm{"2D, A stationary",
                  {2, 3, 1},
                  {row, col},
                  {col, row},
                  {row, col},
                  {row, {}, col},
                  k * n / 3 / 2 + m * n / 2 * 2 / 3,
                  2 * k * n / 3 + m * n / 2},
        algorithm{"2D, B stationary",
                  {2, 3, 1},
                  {col, row},
                  {row, col},
                  {row, col},
                  {{}, col, row},
                  m * k / 2 * 2 / 3 + m * n / 3 / 2,
                  m * k / 2 + m * n / 3},
        algorithm{"2.5D, A and B replicated",
                  {4, 4, 2},
                  {row, col},
                  {row, col},
                  {row | depth, col},
                  {row, col, depth},
                  m * k / (4 * 2) + k * n / (4 * 2) + m * n / (4 * 4) / 2,
                  2 * m * k / (4 * 2) + k * n / (4 * 2) + m * n / (4 * 4)},
        algorithm{"2.5D, C replicated",
                  {2, 3, 2},
                  {row | col, depth},
                  {depth, col | row},
                  {row, col},
                  {row, col, depth},
                  m * k / (2 * 2) * 2 / 3 + k * n / (3 * 2) / 2 + 2 * m * n / (2 * 3) / 2,
                  m * k / (2 * 2) + 2 * k * n / (3 * 2)},
        algorithm{"3D, each matrix on the ranks that multiply it",
                  {2, 3, 2},
                  {row, depth},
                  {depth, col},
                  {row, col},
                  {row, col, depth},
                  2 * m * n / (2 * 3) / 2,
                  0},
        algorithm{"3D, each matrix on all ranks",
                  {2, 3, 2},
                  {row | col, depth},
                  {depth, col | row},
                  {row | depth, col},
                  {row, col, depth},
                  m * k / (2 * 2) * 2 / 3 + k * n / (3 * 2) / 2 + m * n / (2 * 3) / 2,
                  m * k / (2 * 2) + 2 * k * n / (3 * 2) + m * n / (2 * 3)}}) {
    on_mesh(g.mesh, [&](const host_mesh& world) {
      const dense_product p{{m, n, k}, g.transposed_a};
      const auto a = generate<double>(world, g.a, p.a(), field(1)),
                 b = generate<double>(world, g.b, p.b(), field(2));
      auto c = generate<double>(world, g.c, p.c(), field(3));
      CHECK_MESSAGE(multiplies(p, a, b, c, old_values(c, p), p.expected(), {g.schedule}, 1), g.name);
      with_operands(p, a, b, [&](const auto& left, const auto& right) {
        const gemm_plan multiply(left, right, c, {g.schedule});
        const global_index words = world.world().all_reduce(multiply.predicted().words, reduction::max);
        CHECK_MESSAGE(words == g.words, g.name, ": ", words, " words, not ", g.words);
        const auto buffers = static_cast<global_index>(multiply.buffer_bytes() / sizeof(double));
        CHECK_MESSAGE(buffers == g.buffers, g.name, ": ", buffers, " elements in buffers, not ", g.buffers);
      });
    });
  }
}

TEST_CASE("gemm: on COSMA's grid, words and buffers in numbers") {
  constexpr global_index m = 48, n = 24, k = 72;
  constexpr int ranks = 12;
  const partition::gemm_grid g = partition::choose_grid(m, n, k, ranks);
  const auto [pm, pn, pk] = g.problem.mesh;
  const dense_product p{{m, n, k}};
  on_mesh(g.problem.mesh, [&](const host_mesh& world) {
    const auto a = generate<double>(world, g.problem.a.axes, p.a(), field(1)),
               b = generate<double>(world, g.problem.b.axes, p.b(), field(2));
    auto c = generate<double>(world, g.problem.c.axes, p.c(), field(3));
    const gemm_options options{partition::gemm_schedule{axis::row, axis::col, axis::depth}};
    CHECK(multiplies(p, a, b, c, old_values(c, p), p.expected(), options, 1));
    const gemm_plan multiply(a, b, c, options);
    CHECK(world.world().all_reduce(multiply.predicted().words, reduction::max) == g.choice.words);
    CHECK(static_cast<global_index>(multiply.buffer_bytes() / sizeof(double)) == g.choice.buffered);
    global_index least = std::numeric_limits<global_index>::max();
    for (const global_index i : {1, 2, 3, 4, 6, 12})
      for (const global_index j : {1, 2, 3, 4, 6, 12})
        if (ranks % (i * j) == 0) {
          const global_index l = ranks / (i * j);
          least = std::min(least, m * k / (i * l) * (j - 1) / j + k * n / (l * j) * (i - 1) / i +
                                      m * n / (i * j) * (l - 1) / l);
        }
    CHECK(g.choice.words == least);
    CHECK(g.choice.words == m * k / (pm * pk) * (pn - 1) / pn + k * n / (pk * pn) * (pm - 1) / pm +
                                m * n / (pm * pn) * (pk - 1) / pk);
  });
}

}  // namespace test_gemm_plan
