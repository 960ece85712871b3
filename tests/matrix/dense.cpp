// SPDX-License-Identifier: Apache-2.0
// Blocks of dense matrices: where they lie, and how layouts become types and back.
#include "partita/matrix/dense.hpp"

#include <doctest/doctest.h>
#include <type_traits>
#include <utility>

#include "support/matrices.hpp"

namespace test_dense {

using namespace partita;
using namespace test_support;

static_assert(!std::is_copy_constructible_v<host_dense<>>);
static_assert(std::is_convertible_v<host_dense<float, replicated>, host_dense<float>>);
static_assert(!std::is_convertible_v<host_dense<float>, host_dense<float, replicated>>);

TEST_CASE("dense: blocks of all ranks tile the matrix as often as there are copies") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      for_each_layout([&](layout l) {
        host_dense<> x(m, l, {11, 7});
        CHECK(x.layout() == l);
        CHECK(x.shape() == matrix_shape{11, 7});
        CHECK(x.local().rows == x.row_range().size());
        CHECK(x.local().cols == x.col_range().size());
        CHECK(x.local().stride == x.local().cols);
        CHECK(x.values().size() == static_cast<std::size_t>(x.row_range().size() * x.col_range().size()));
        const auto mine = static_cast<global_index>(x.values().size());
        CHECK(m.along(every_axis).all_reduce(mine) == 77 * m.size() / m.shape().size(l.used()));
      });
    });
}

TEST_CASE("dense: a static layout becomes a dynamic one, and back with a check") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    constexpr layout rows{axis::row, {}};
    host_dense<double, rows> typed(m, {5, 3});
    const double* const place = typed.values().data();
    host_dense<> x = std::move(typed);
    CHECK(x.layout() == rows);
    CHECK(x.values().data() == place);
    expect_error<shape_error>("cannot have rows cut by row, columns by none",
                              [&] { host_dense<double, replicated>(std::move(x)); });
    const host_dense<double, rows> back(std::move(x));
    CHECK(back.values().data() == place);
  });
}

TEST_CASE("dense: a matrix that is too large is named, also where its bytes have more than 64 bits") {
  const auto refused = [](matrix_shape size) {
    expect_error<error>("a dense matrix of " + to_string(size) + " does not fit into memory", [&] {
      on_mesh({1, 1, 1}, [&](const host_mesh& m) { host_dense<>(m, replicated, size); });
    });
  };
  refused({2000000000, 2000000000});
  if (!sanitized) refused({1000000000, 1000000000});  // sanitizers end a program that asks for so much
}

TEST_CASE("dense: nothing can be asked of a matrix that was moved from") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    host_dense<> x(m, replicated, {3, 2}), y(m, replicated, {3, 2});
    const auto gone = [](auto act) {
      expect_error<error>("a matrix was used after it had been moved from", act);
    };
    const auto all_refused = [&](host_dense<>& z) {
      gone([&] { z.mesh(); });
      gone([&] { z.shape(); });
      gone([&] { z.row_blocking(); });
      gone([&] { z.col_range(); });
      gone([&] { z.local(); });
      gone([&] { z.values(); });
      gone([&] { std::as_const(z).values(); });
    };
    host_dense<> taken = std::move(x);
    all_refused(x);
    y = std::move(taken);
    all_refused(taken);
    const host_dense<double, replicated> typed(std::move(y));
    all_refused(y);
    gone([&] { host_dense<double, replicated> again(std::move(y)); });
    x = host_dense<>(m, replicated, {5, 5});
    CHECK(x.shape() == matrix_shape{5, 5});
  });
}

TEST_CASE("dense: layouts and blockings that are none of the mesh are refused") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const blocking rows = blocking::even(4, m.shape(), nesting::rows),
                   others = blocking::even(3, {1, 2, 1}, nesting::cols);
    expect_error<shape_error>("blockings of mesh 1x2x1 given to a matrix on mesh 2x1x1",
                              [&] { host_dense<>(m, replicated, rows, others); });
    expect_error<shape_error>("not both", [&] { host_dense<>(m, {axis::row, axis::row}, {4, 3}); });
  });
}

}  // namespace test_dense
