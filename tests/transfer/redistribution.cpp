// SPDX-License-Identifier: Apache-2.0
// Moving dense matrices: every pair of layouts on every small mesh, its traffic against a count of elements.

#include "partita/transfer/distribute.hpp"
#include "partita/transfer/staged_redistribution.hpp"
#include "support/matrices.hpp"

namespace test_redistribution {

using namespace test_support;

/// Rows and columns of a matrix, cut for one mesh.
struct blockings {
  blocking rows, cols;
};

blockings even(matrix_shape shape, mesh_shape m) {
  return {blocking::even(shape.rows, m, nesting::rows), blocking::even(shape.cols, m, nesting::cols)};
}

/// 9 rows of weights 3 and 0 in turn and one heavy one; columns in blocks of 0, 1, 2, ... for each place
/// along col.
blockings uneven(mesh_shape m) {
  const std::vector<global_index> weights = {3, 0, 3, 40, 3, 0, 3, 0, 3};
  std::vector<global_index> sizes;
  for (int k = 0; k < m.col; ++k) sizes.push_back((k + 4) % 4 + (m.col == 1 ? 3 : 0));
  return {blocking::balanced(weights, m, nesting::rows), blocking::given(sizes, m, nesting::cols)};
}

/// This rank's block of test matrix 1 under a cut.
std::vector<double> block_values(const partition::rectangle& r) {
  std::vector<double> values;
  for (global_index i = r.rows.begin; i < r.rows.end; ++i)
    for (global_index j = r.cols.begin; j < r.cols.end; ++j) values.push_back(test_support::element(i, j, 1));
  return values;
}
template <class T>
matrix_view<T> view(T* values, const partition::rectangle& r) {
  const auto cols = static_cast<local_index>(r.cols.size());
  return {values, static_cast<local_index>(r.rows.size()), cols, cols};
}

/// One pair of layouts: the values, the traffic and the allocations of two runs of one plan.
bool redistributes(const mesh<host>& m, const blockings& b, layout from, layout to) {
  const partition::rectangle before = partition::block_of(b.rows, b.cols, from, m.at()),
                             after = partition::block_of(b.rows, b.cols, to, m.at());
  const std::vector<double> x = block_values(before), expected = block_values(after);
  const traffic travels = test_support::redistributed(m.shape(), m.at(), b.rows, b.cols, from, to);
  redistribution<double, host> plan(m, b.rows, b.cols, from, to);
  bool right = plan.predicted() == travels;
  const auto allocations = m.queue().meter()->allocations();
  for (int run = 0; run < 2; ++run) {
    std::vector<double> y(expected.size(), std::numeric_limits<double>::quiet_NaN());
    m.ledger().clear();
    plan(view(x.data(), before), view(y.data(), after));
    right = right && y == expected && heard(m) == travels;
    if (partition::route_between(from, to).kind == partition::movement::slice)
      right = right && m.ledger().entries().empty();
  }
  return right && m.queue().meter()->allocations() == allocations;
}

void every_pair(mesh_shape shape, const blockings& b) {
  on_mesh(shape, [&](const mesh<host>& m) {
    int pair = 0;
    for (const layout from : test_support::every_layout())
      for (const layout to : test_support::every_layout()) {
        if (test_support::sanitized && (++pair + 2 * shape.row + shape.col) % 5 != 0) continue;
        CHECK_MESSAGE(redistributes(m, b, from, to), b.rows.size(), " x ", b.cols.size(), " on mesh ",
                      to_string(shape), " from ", to_string(from), " to ", to_string(to), ", rank ",
                      m.rank());
      }
  });
}

TEST_CASE("redistribute: every pair of layouts on every mesh, even blocks") {
  for (const mesh_shape shape : test_support::every_small_mesh()) every_pair(shape, even({7, 5}, shape));
}

TEST_CASE("redistribute: every pair of layouts, balanced rows and given columns") {
  for (const mesh_shape shape : {mesh_shape{2, 1, 1}, mesh_shape{1, 3, 1}, mesh_shape{2, 3, 1},
                                 mesh_shape{2, 2, 2}, mesh_shape{3, 1, 2}, mesh_shape{2, 3, 2}})
    every_pair(shape, uneven(shape));
}

TEST_CASE("redistribute: every pair of layouts of matrices without rows or columns, or of one element") {
  for (const matrix_shape size :
       {matrix_shape{0, 4}, matrix_shape{4, 0}, matrix_shape{0, 0}, matrix_shape{1, 1}})
    every_pair({2, 2, 2}, even(size, {2, 2, 2}));
}

TEST_CASE("redistribute: matrices") {
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 3, 2}, mesh_shape{3, 2, 1}})
    on_mesh(shape, [](const mesh<host>& m) {
      for_each_layout([&](layout from) {
        const auto x = generate<double>(m, from, {11, 7}, field(2));
        for_each_layout([&](layout to) {
          m.ledger().clear();
          const auto y = redistribute(x, to);
          check_equals(y, field(2), 0, "redistribute");
          same(heard(m),
               test_support::redistributed(m.shape(), m.at(), x.row_blocking(), x.col_blocking(), from, to),
               "redistribute");
          CHECK(y.row_blocking() == x.row_blocking());
          CHECK(y.col_blocking() == x.col_blocking());
        });
      });
    });
}

TEST_CASE("staged redistribution: parts of the rows, one in flight while another is used") {
  for (const mesh_shape shape : {mesh_shape{1, 3, 1}, mesh_shape{2, 2, 1}, mesh_shape{1, 4, 2}})
    for (const auto& b : {even({23, 5}, shape), uneven(shape)})
      on_mesh(shape, [&](const mesh<host>& m) {
        const layout columns{axis_set(), axis_set(axis::col)};
        const global_index n = b.rows.size();
        const std::vector<interval> parts = {{0, n / 3}, {n / 3, n / 3}, {n / 3, n - 1}, {n - 1, n}};
        for (const auto& [from, to] : {std::pair(vertex_rows, columns), std::pair(columns, vertex_rows)}) {
          if (m.shape().row * m.shape().depth > 1 && from == columns) continue;
          const partition::rectangle before = partition::block_of(b.rows, b.cols, from, m.at()),
                                     after = partition::block_of(b.rows, b.cols, to, m.at());
          const std::vector<double> x = block_values(before), expected = block_values(after);
          std::vector<double> y(expected.size(), std::numeric_limits<double>::quiet_NaN());
          transfer::staged_redistribution<double, host> plan(m, b.rows, b.cols, from, to, parts);
          REQUIRE(plan.stages() == 4);
          m.ledger().clear();
          plan.start(0, view(x.data(), before));
          for (std::size_t s = 0; s < 4; ++s) {
            if (s + 1 < 4) plan.start(s + 1, view(x.data(), before));
            plan.finish(s, view(x.data(), before), view(y.data(), after));
          }
          CHECK(y == expected);
          CHECK(heard(m) == plan.predicted());
          CHECK(plan.predicted().words ==
                redistribution<double, host>(m, b.rows, b.cols, from, to).predicted().words);
        }
      });
}

TEST_CASE("redistribution: to other blockings") {
  on_mesh({2, 3, 2}, [](const mesh<host>& m) {
    const blockings before = even({9, 5}, m.shape()), after = uneven(m.shape());
    REQUIRE(before.rows.size() == after.rows.size());
    for_each_layout([&](layout from) {
      for_each_layout([&](layout to) {
        const blocking cols = blocking::even(after.cols.size(), m.shape(), nesting::cols);
        const auto x = generate<double>(m, from, before.rows, cols, field(2));
        host_dense<> y(m, to, after.rows, after.cols);
        redistribution<double, host> move(m, {before.rows, cols, from}, {after.rows, after.cols, to});
        m.ledger().clear();
        move(x, y);
        check_equals(y, field(2), 0, "redistribution");
        CHECK(heard(m) == move.predicted());
        const auto wanted = move.new_block(), owned = move.old_block();
        CHECK(heard(m).words == wanted.size() - intersection(wanted, owned).size());
      });
    });
  });
  expect_error<shape_error>({2, 1, 1}, "a matrix of 3 x 2 cannot be redistributed to one of 2 x 3",
                            [](const mesh<host>& m) {
                              redistribution<double, host>(m, partition::evenly({3, 2}, m.shape(), {}),
                                                           partition::evenly({2, 3}, m.shape(), {}));
                            });
}

TEST_CASE("redistribute: elements of four bytes, entered under the group that talks") {
  on_mesh({2, 3, 1}, [](const mesh<host>& m) {
    const auto x = generate<grid_2d.dense, float>(m, {13, 8}, field(3));
    const comm::phase_scope phase(m.ledger(), "widen");
    m.ledger().clear();
    const auto y = redistribute<partition::full_width(grid_2d.dense)>(x);
    check_equals(
        y, [](global_index i, global_index j) { return static_cast<float>(test_support::element(i, j, 3)); },
        0, "float");
    const auto& entries = m.ledger().entries();
    CHECK(entries.size() == 1);
    if (entries.empty()) return;
    CHECK(entries[0].phase == "widen");
    CHECK(entries[0].kind == operation::all_to_all);
    CHECK(entries[0].axis == "col");
    CHECK(entries[0].bytes == 4 * entries[0].received.words);
    CHECK(redistribute<replicated>(y).values().size() == 13 * 8);
    CHECK(entries.size() == 2);
    CHECK(entries.back().kind == operation::all_gather);
    CHECK(entries.back().axis == "row+col");
  });
}

}  // namespace test_redistribution
