// SPDX-License-Identifier: Apache-2.0
// Products with a replicated weight and the weight's gradient: values against tests/reference, what travels
// against the rules of the design, on every layout.
#include "partita/algebra/gemm.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "reference/gemm.hpp"
#include "support/matrices.hpp"

namespace test_gemm {

using namespace partita;
using namespace test_support;

namespace {

/// n x f_in times f_in x f_out.
struct sizes {
  global_index n, in, out;
};
constexpr auto many_sizes = {sizes{23, 11, 7}, sizes{13, 5, 2}, sizes{2, 1, 1}, sizes{10, 40, 3},
                             sizes{10, 3, 40}};

/// op(a) op(b) of test matrices 1 and 2.
std::vector<double> product(bool ta, bool tb, matrix_shape a, matrix_shape b) {
  const matrix_shape c{ta ? a.cols : a.rows, tb ? b.rows : b.cols};
  const std::vector<double> left = whole(a, field(1)), right = whole(b, field(2));
  std::vector<double> result(static_cast<std::size_t>(c.rows * c.cols));
  reference::gemm(ta, tb, 1.0, view_of(left, a), view_of(right, b), 0.0,
                  matrix_view<double>{result.data(), static_cast<local_index>(c.rows),
                                      static_cast<local_index>(c.cols), c.cols});
  return result;
}

/// This rank's share of what travels in each form.
traffic words(const host_mesh& m, layout narrow, const blocking& rows, const blocking& in,
              const blocking& out, gemm_form form) {
  const layout wide = partition::full_width(narrow);
  const int p = m.shape().size(narrow.cols);
  if (p == 1) return {};
  if (form == gemm_form::partial_sums) {
    const global_index mine = rows.block(narrow.rows, m.at()).size() * out.block(narrow.cols, m.at()).size();
    return mine == 0 ? traffic{} : traffic{(p - 1) * mine, p - 1};
  }
  return test_support::redistributed(m.shape(), m.at(), rows, in, narrow, wide) +
         test_support::redistributed(m.shape(), m.at(), rows, out, wide, narrow);
}

global_index largest(const host_mesh& m, global_index mine) {
  global_index all[] = {mine};
  m.world().all_reduce(std::span<global_index>(all), reduction::max);
  return all[0];
}

template <class T, layout L>
void spoil(host_dense<T, L>& y) {
  for (T& v : y.values()) v = std::numeric_limits<T>::quiet_NaN();
}

/// One plan, run twice: values, traffic, allocations.
gemm_form check_plan(const host_mesh& m, layout l, const blocking& rows, const blocking& in,
                     const blocking& out, bool transpose, gemm_form form) {
  const matrix_shape weight =
      transpose ? matrix_shape{out.size(), in.size()} : matrix_shape{in.size(), out.size()};
  const auto x = generate<double>(m, l, rows, in, field(1));
  const auto w = generate<replicated, double>(m, weight, field(2));
  const std::vector<double> expected = product(false, transpose, x.shape(), weight);
  host_dense<> y(m, l, rows, out);
  gemm_plan<double, host> plan(m, l, rows, in, out, transpose, form);
  const auto allocations = m.queue().meter()->allocations();
  for (int run = 0; run < 2; ++run) {
    spoil(y);
    m.ledger().clear();
    plan(x, w, y);
    check_equals(y, expected, 1e-13, "gemm_plan");
    const traffic expected_words = words(m, l, rows, in, out, plan.form());
    same(heard(m), expected_words, "gemm_plan");
    same(plan.predicted(), expected_words, "gemm_plan::predicted");
  }
  CHECK(m.queue().meter()->allocations() == allocations);
  check_equals(x, field(1), 0, "X of gemm_plan");
  return plan.form();
}

/// Both forms and the automatic one; how often that took partial sums and how often full width.
void check_forms(const host_mesh& m, layout l, const blocking& rows, const blocking& in, const blocking& out,
                 std::array<std::atomic<int>, 2>& chosen) {
  for (const bool transpose : {false, true}) {
    CHECK(check_plan(m, l, rows, in, out, transpose, gemm_form::full_width) == gemm_form::full_width);
    CHECK(check_plan(m, l, rows, in, out, transpose, gemm_form::partial_sums) == gemm_form::partial_sums);
    const gemm_form form = check_plan(m, l, rows, in, out, transpose, gemm_form::automatic);
    if (m.shape().size(l.cols) == 1) continue;
    const global_index full = largest(m, words(m, l, rows, in, out, gemm_form::full_width).words);
    const global_index partial = largest(m, words(m, l, rows, in, out, gemm_form::partial_sums).words);
    CHECK(form != gemm_form::automatic);
    CHECK((form == gemm_form::full_width ? full : partial) == std::min(full, partial));
    if (full != partial) ++chosen[form == gemm_form::full_width];
  }
}

}  // namespace

TEST_CASE("gemm: both forms, transposed or not, on every layout") {
  std::array<std::atomic<int>, 2> chosen{};
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [&](const host_mesh& m) {
      for (const auto& [n, f_in, f_out] : many_sizes)
        for_each_layout([&, n = n, in = f_in, out = f_out](layout l) {
          check_forms(m, l, blocking::even(n, m.shape(), nesting::rows),
                      blocking::even(in, m.shape(), nesting::cols),
                      blocking::even(out, m.shape(), nesting::cols), chosen);
        });
    });
  CHECK(chosen[0] > 0);
  CHECK(chosen[1] > 0);
}

TEST_CASE("gemm: blockings of one's own") {
  std::array<std::atomic<int>, 2> chosen{};
  for (const mesh_shape shape : {mesh_shape{2, 2, 1}, mesh_shape{3, 2, 2}})
    on_mesh(shape, [&](const host_mesh& m) {
      const std::vector<global_index> weights = {1, 1, 20, 1, 1, 0, 0, 1, 1, 1, 4, 1, 1};
      const blocking rows = blocking::balanced(weights, m.shape(), nesting::rows);
      const blocking in = blocking::given({9, 2}, m.shape(), nesting::cols);
      const blocking out = blocking::given({0, 6}, m.shape(), nesting::cols);
      for_each_layout([&](layout l) { check_forms(m, l, rows, in, out, chosen); });
    });
}

TEST_CASE("gemm: planned and run once") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      const std::vector<double> expected = product(false, false, {14, 9}, {9, 5});
      const auto w = generate<replicated, double>(m, {9, 5}, field(2));
      for_each_layout([&](layout l) {
        const auto x = generate<double>(m, l, {14, 9}, field(1));
        check_equals(gemm(x, w), expected, 1e-13, "gemm");
        check_equals(gemm(x, w, gemm_form::partial_sums), expected, 1e-13, "gemm");
      });
      const auto single = gemm(generate<grid_2d.dense, float>(m, {14, 9}, field(1)),
                               generate<replicated, float>(m, {9, 5}, field(2)));
      check_equals(single, std::vector<float>(expected.begin(), expected.end()), 1e-6, "gemm of floats");
    });
}

TEST_CASE("gemm: words in numbers") {
  // 12 x 8 times 8 x 4 on 2 x 2: a rank holds 6 x 4 of X and 6 x 2 of Y. Full width takes 3 x 4 of X and
  // gives back 3 x 2 of Y; partial sums take one block of Y.
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    const blocking rows = blocking::even(12, m.shape(), nesting::rows);
    const blocking in = blocking::even(8, m.shape(), nesting::cols),
                   out = blocking::even(4, m.shape(), nesting::cols);
    const auto planned = [&](gemm_form form) {
      return gemm_plan<double, host>(m, grid_2d.dense, rows, in, out, false, form);
    };
    CHECK(planned(gemm_form::full_width).predicted() == traffic{18, 2});
    CHECK(planned(gemm_form::partial_sums).predicted() == traffic{12, 1});
    CHECK(planned(gemm_form::automatic).form() == gemm_form::partial_sums);
    // Of X^T G 8 x 4: 12 + 6 words to full width, and an all-reduce of 32 among four.
    const auto x = generate<grid_2d.dense, double>(m, {12, 8}, field(1)),
               g = generate<grid_2d.dense, double>(m, {12, 4}, field(2));
    m.ledger().clear();
    inner(x, g);
    CHECK(heard(m).words == 12 + 6 + 2 * 3 * 32 / 4);
  });
}

TEST_CASE("inner: on every layout") {
  for (const mesh_shape shape : some_meshes)
    on_mesh(shape, [](const host_mesh& m) {
      for (const auto& [n, f_in, f_out] : many_sizes)
        for_each_layout([&, n = n, in = f_in, out = f_out](layout l) {
          const auto x = generate<double>(m, l, {n, in}, field(1));
          const auto g = generate<double>(m, l, {n, out}, field(2));
          m.ledger().clear();
          const auto dw = inner(x, g);
          check_equals(dw, product(true, false, {n, in}, {n, out}), 1e-13, "inner");
          const layout narrow = l, wide = partition::full_width(l);
          const axis_set group = narrow.used();
          const auto widened = [&](const blocking& cols) {
            return test_support::redistributed(m.shape(), m.at(), x.row_blocking(), cols, narrow, wide);
          };
          same(heard(m),
               widened(x.col_blocking()) + widened(g.col_blocking()) +
                   test_support::all_reduced(in * out, partition::rank_in_group(m.shape(), group, m.at()),
                                             m.shape().size(group)),
               "inner");
        });
    });
}

TEST_CASE("gemm: shapes that do not fit are named") {
  const auto given = [](matrix_shape x, matrix_shape w, matrix_shape y, bool transpose = false) {
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      const auto even = [&](global_index n, nesting order) { return blocking::even(n, m.shape(), order); };
      gemm_plan<double, host> plan(m, grid_2d.dense, even(7, nesting::rows), even(5, nesting::cols),
                                   even(3, nesting::cols), transpose);
      host_dense<double, grid_2d.dense> result(m, y);
      plan(generate<grid_2d.dense, double>(m, x, field(1)), generate<replicated, double>(m, w, field(2)),
           result);
    });
  };
  CHECK_NOTHROW(given({7, 5}, {5, 3}, {7, 3}));
  CHECK_NOTHROW(given({7, 5}, {3, 5}, {7, 3}, true));
  const std::string planned = "gemm planned for X of 7 x 5 and a weight of 5 x 3 was given X of ";
  expect_error<shape_error>(planned + "8 x 5, W of 5 x 3 and Y of 7 x 3", [&] {
    given({8, 5}, {5, 3}, {7, 3});
  });
  expect_error<shape_error>(planned + "7 x 6, W of 5 x 3 and Y of 7 x 3", [&] {
    given({7, 6}, {5, 3}, {7, 3});
  });
  expect_error<shape_error>(planned + "7 x 5, W of 3 x 5 and Y of 7 x 3", [&] {
    given({7, 5}, {3, 5}, {7, 3});
  });
  expect_error<shape_error>(planned + "7 x 5, W of 5 x 3 and Y of 6 x 3", [&] {
    given({7, 5}, {5, 3}, {6, 3});
  });
  expect_error<shape_error>(planned + "7 x 5, W of 5 x 3 and Y of 7 x 4", [&] {
    given({7, 5}, {5, 3}, {7, 4});
  });
  expect_error<shape_error>("a weight of 3 x 5 was given X of 7 x 5, W of 5 x 3", [&] {
    given({7, 5}, {5, 3}, {7, 3}, true);
  });
  expect_error<shape_error>("gemm: X of 7 x 5 cannot be multiplied by W of 4 x 3", [] {
    on_mesh({1, 2, 1}, [](const host_mesh& m) {
      gemm(generate<grid_2d.dense, double>(m, {7, 5}, field(1)),
           generate<replicated, double>(m, {4, 3}, field(2)));
    });
  });
  expect_error<shape_error>("X and Y with the same rows, not X of 7 x 5 and Y of 8 x 3", [] {
    on_mesh({2, 2, 1}, [](const host_mesh& m) {
      inner(generate<grid_2d.dense, double>(m, {7, 5}, field(1)),
            generate<grid_2d.dense, double>(m, {8, 3}, field(2)));
    });
  });
}

}  // namespace test_gemm
