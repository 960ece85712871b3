// SPDX-License-Identifier: Apache-2.0
// Blocks of dense matrices: where they lie, and how layouts become types and back.
#include "partita/matrix/dense.hpp"

#include "support/matrices.hpp"

namespace test_dense {

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
        CHECK(x.local().stride(0) == x.local().extent(1));
        CHECK(x.values().size() == static_cast<std::size_t>(x.row_range().size() * x.col_range().size()));
        const auto mine = static_cast<global_index>(x.values().size());
        CHECK(m.along(partition::every_axis).all_reduce(mine) == 77 * m.size() / m.shape().size(l.used()));
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
    expect_error<error>({1, 1, 1}, "a dense matrix of " + to_string(size) + " does not fit into memory",
                        [&](const host_mesh& m) { host_dense<>(m, replicated, size); });
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

TEST_CASE("dense: a view has the caller's memory, in every layout") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      for_each_layout([&](layout l) {
        host_dense<> x = generate<double>(m, l, {11, 7}, field(1));
        std::vector<double> mine(x.values().begin(), x.values().end());
        host_dense<> view = host_dense<>::view(m, l, {11, 7}, mine);
        check_equals(view, field(1), 0, "a view");
        CHECK(view.values().data() == mine.data());
        CHECK(host_dense<>::view(m, l, {11, 7}, x.local()).values().data() == x.values().data());
        CHECK(collect(view) == whole({11, 7}, field(1)));
        const host_dense<> moved = std::move(view);
        if (!mine.empty()) mine.front() = 5;
        CHECK(std::equal(mine.begin(), mine.end(), moved.values().begin()));
      });
    });
}

TEST_CASE("dense: a view in the layout of its type, over blocks of other sizes") {
  on_mesh({2, 3, 1}, [](const host_mesh& m) {
    constexpr layout grid{axis::row, axis::col};
    const blocking rows = blocking::given({1, 4}, m.shape(), nesting::rows),
                   cols = blocking::given({2, 0, 5}, m.shape(), nesting::cols);
    std::vector<double> mine;
    for (global_index i = rows.block(grid.rows, m.at()).begin; i < rows.block(grid.rows, m.at()).end; ++i)
      for (global_index j = cols.block(grid.cols, m.at()).begin; j < cols.block(grid.cols, m.at()).end; ++j)
        mine.push_back(element(i, j));
    check_equals(host_dense<double, grid>::view(m, rows, cols, mine), field(0), 0, "uneven blocks");
    std::vector<float> half(static_cast<std::size_t>(host_dense<float, grid>(m, {6, 4}).local().rows) *
                            static_cast<std::size_t>(host_dense<float, grid>(m, {6, 4}).local().cols));
    CHECK(host_dense<float, grid>::view(m, {6, 4}, half).shape() == matrix_shape{6, 4});
  });
}

TEST_CASE("dense: a view holds the owner of its memory, and assigning to it writes nothing there") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    auto memory = std::make_shared<std::vector<double>>(6, 1.0);
    const std::weak_ptr<std::vector<double>> watched = memory;
    std::span<double> block = *memory;
    host_dense<> x = host_dense<>::view(m, replicated, {3, 2}, block, std::move(memory));
    host_dense<double, replicated> typed(std::move(x));
    CHECK(typed.local()(2, 1) == 1);
    CHECK(!watched.expired());
    typed = host_dense<double, replicated>(m, {3, 2});
    CHECK(watched.expired());

    std::vector<double> kept(6, 2.0);
    host_dense<> y = host_dense<>::view(m, replicated, {3, 2}, kept);
    y = generate<double>(m, replicated, {3, 2}, field(0));
    CHECK(kept == std::vector<double>(6, 2.0));
  });
}

TEST_CASE("dense: a view of what is const has its memory, and may only be read") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const auto x = generate<double>(m, {axis::row, {}}, {6, 4}, field(0));
    host_dense<> of_block = host_dense<>::view(m, {axis::row, {}}, {6, 4}, x.local());
    const host_dense<> first = first_rows(x, blocking(x.row_blocking()));
    for (const host_dense<>* view : std::initializer_list<const host_dense<>*>{&of_block, &first}) {
      CHECK(view->values().data() == x.values().data());
      CHECK(view->local().data == x.local().data);
    }
    expect_error<error>("a matrix of 6 x 4 is a view that may only be read", [&] { of_block.values(); });
    host_dense<> moved = std::move(of_block);
    expect_error<error>("a matrix of 6 x 4 is a view that may only be read", [&] { moved.local(); });
    moved = generate<double>(m, {axis::row, {}}, {6, 4}, field(1));
    CHECK(moved.values().size() == 12);
    const std::vector<double> memory(12);
    CHECK(std::as_const(moved = host_dense<>::view(m, {axis::row, {}}, {6, 4}, memory)).values().data() ==
          memory.data());
    host_dense<>::view(m, {axis::row, {}}, {0, 4}, std::span<const double>()).values();
  });
}

TEST_CASE("dense: memory that is no block of the matrix is refused") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    std::vector<double> memory(20);
    const auto view = [&](auto block) { host_dense<>::view(m, {axis::row, {}}, {6, 4}, block); };
    expect_error<shape_error>("a matrix of 6 x 4 has a block of 3 x 4, 12 elements, here, not of 20",
                              [&] { view(std::span(memory)); });
    expect_error<shape_error>("a matrix of 6 x 4 has a block of 3 x 4 here, not of 4 x 3", [&] {
      view(matrix_view<double>{memory.data(), 4, 3, 3});
    });
    expect_error<shape_error>("cannot view a block of 3 x 4 whose rows are 5 elements apart", [&] {
      view(matrix_view<double>{memory.data(), 3, 4, 5});
    });
    expect_error<shape_error>("a matrix of 6 x 4 was given a null pointer for its block of 3 x 4", [&] {
      view(matrix_view<double>{nullptr, 3, 4, 4});
    });
    host_dense<>::view(m, {axis::row, {}}, {0, 4}, std::span<double>());
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
