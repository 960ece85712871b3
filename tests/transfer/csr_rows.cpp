// SPDX-License-Identifier: Apache-2.0
// Matrices from a rank's own CSR arrays: the same, bit for bit, as from triplets, under every policy.
#include "partita/transfer/csr_rows.hpp"

#include <list>

#include "partita/algebra/spmm.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_csr_rows {

using namespace test_support;
using transfer::csr_rows;
using entry = triplet<double>;

constexpr std::array<int, 5> ranks_tried = {1, 2, 3, 4, 6};

/// CSR arrays of some rows of the test matrix; within a row the columns descend.
template <class Offset, class Column>
struct arrays {
  global_index first = 0;
  std::vector<Offset> offsets{0};
  std::vector<Column> columns;
  std::vector<double> values;

  arrays(const std::vector<entry>& all, interval rows) : first(rows.begin) {
    for (global_index i = rows.begin; i < rows.end; ++i) {
      for (auto e = all.rbegin(); e != all.rend(); ++e)
        if (e->row == i) {
          columns.push_back(static_cast<Column>(e->col));
          values.push_back(e->value);
        }
      offsets.push_back(static_cast<Offset>(columns.size()));
    }
  }
  csr_rows<double, Offset, Column> view() const { return {first, offsets, columns, values}; }
};

/// The rows of a rank: the first has one, others more and more, the last what is left.
interval rows_of(int rank, int ranks, global_index n) {
  const auto begin_of = [&](global_index r) { return r == ranks ? n : std::min(n, r * r); };
  return {begin_of(rank), begin_of(rank + 1)};
}

template <class Tiles>
bool same_tiles(const Tiles& a, const Tiles& b) {
  const auto equal = [](const auto& x, const auto& y) {
    return std::equal(x.data(), x.data() + x.size(), y.data(), y.data() + y.size());
  };
  return a.rows == b.rows && a.widths == b.widths && equal(a.structure, b.structure) &&
         equal(a.values, b.values);
}

/// distribute of CSR arrays with such integers against distribute of triplets.
template <class Offset, class Column>
void check_like_triplets(matrix_shape shape) {
  const std::vector<entry> all = sparse_entries(shape);
  on_each_mesh(ranks_tried, [&](const host_mesh& m, const policy& p) {
    const arrays<Offset, Column> mine(all, rows_of(m.rank(), m.size(), shape.rows));
    const auto expected = distribute(m, p, shape, share(all, m));
    const auto a = distribute(m, p, shape, mine.view());
    CHECK(same_tiles(*a.local(), *expected.local()));
    CHECK(same_tiles(*transposed(a).local(), *transposed(expected).local()));
  });
}

static_assert(std::forward_iterator<csr_rows<float, int, int>::iterator>);

TEST_CASE("csr_rows: a range of triplets, empty rows first, between and last") {
  const std::vector<std::int32_t> offsets = {0, 0, 2, 2, 3, 3};
  const std::vector<std::int64_t> columns = {7, 1, 0};
  const std::vector<float> values = {1, 2, 3};
  const csr_rows rows(10, offsets, columns, values);
  CHECK(std::vector<triplet<float>>(rows.begin(), rows.end()) ==
        std::vector<triplet<float>>{{11, 7, 1}, {11, 1, 2}, {13, 0, 3}});
  const std::vector<int> none = {0}, empty_rows = {0, 0, 0};
  for (const auto& o : {none, empty_rows}) {
    const csr_rows nothing(0, o, std::span<const int>(), std::span<const double>());
    CHECK(nothing.begin() == nothing.end());
  }
}

TEST_CASE("csr_rows: distributed as triplets are, under every policy") {
  check_like_triplets<std::int32_t, std::int32_t>({23, 23});
  check_like_triplets<std::int64_t, std::int64_t>({29, 17});
  check_like_triplets<std::int64_t, std::int32_t>({5, 31});
}

TEST_CASE("csr_rows: products with A and its transpose") {
  const matrix_shape shape{23, 23};
  const std::vector<entry> all = sparse_entries(shape);
  on_each_mesh(ranks_tried, [&](const host_mesh& m, const policy& p) {
    const arrays<std::int64_t, std::int64_t> mine(all, rows_of(m.rank(), m.size(), shape.rows));
    const auto a = distribute(m, p, shape, mine.view());
    const auto x = generate<double>(m, p.dense, {23, 5}, field(0));
    check_equals(spmm(a, x), product(all, shape, 5, false), 1e-13, "A X");
    check_equals(spmm(transposed(a), x), product(all, shape, 5, true), 1e-13, "A^T X");
  });
}

TEST_CASE("csr_rows: symmetric, of one way, and in a layout of the type") {
  std::vector<entry> all = sparse_entries({19, 19});
  for (std::size_t k = 0, n = all.size(); k < n; ++k) all.push_back({all[k].col, all[k].row, all[k].value});
  on_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const arrays<int, int> mine(all, rows_of(m.rank(), m.size(), 19));
    const auto a = distribute(m, grid_2d, {19, 19}, mine.view(), symmetry::symmetric);
    CHECK(transposed(a).local() == a.local());
    const auto typed = distribute<grid_2d.sparse>(m, {19, 19}, mine.view(), symmetry::one_way);
    CHECK(same_tiles(*typed.local(), *a.local()));
    const std::vector<entry> directed = {{0, 1, 1}};
    const arrays<int, int> edge(directed, {0, m.rank() == 0 ? 1 : 0});
    expect_error<shape_error>("was declared symmetric but is not", [&] {
      distribute(m, grid_2d, {19, 19}, edge.view(), symmetry::symmetric);
    });
  });
}

TEST_CASE("distribute: entries in any forward range") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const std::vector<entry> all = sparse_entries({9, 9}), mine = share(all, m);
    const std::list<entry> listed(mine.begin(), mine.end());
    CHECK(same_tiles(*distribute(m, row_1d, {9, 9}, listed).local(),
                     *distribute(m, row_1d, {9, 9}, mine).local()));
  });
}

TEST_CASE("csr_rows: arrays that are none are refused") {
  const std::vector<double> two = {1, 2};
  const auto refused = [&](const char* why, std::vector<int> offsets, std::vector<int> columns) {
    expect_error<shape_error>(why, [&] { csr_rows(4, offsets, columns, two); });
  };
  refused("the offsets of CSR rows from 4 on do not begin with 0", {}, {0, 1});
  refused("the offsets of CSR rows from 4 on do not begin with 0", {1, 2}, {0, 1});
  refused("row 5 of CSR rows ends at 1, before it begins at 2", {0, 2, 1, 2}, {0, 1});
  refused("CSR rows with offsets up to 3 have 2 columns and 2 values", {0, 3}, {0, 1});
  refused("CSR rows with offsets up to 2 have 3 columns and 2 values", {0, 2}, {0, 1, 2});
}

TEST_CASE("csr_rows: entries that distribute refuses of triplets") {
  const auto refused = [](const std::string& why, std::vector<int> columns, std::vector<double> values) {
    expect_error<shape_error>({2, 1, 1}, why, [&](const host_mesh& m) {
      const std::vector<int> offsets = {0, 1, 2};
      distribute(m, row_1d, {4, 4}, csr_rows(2 * m.rank(), offsets, columns, values));
    });
  };
  refused(", 4) is outside a matrix of 4 x 4", {0, 4}, {1, 1});  // from either rank
  refused(", -1) is outside a matrix of 4 x 4", {-1, 0}, {1, 1});
  expect_error<error>({1, 1, 1}, "which is not a finite number", [](const host_mesh& m) {
    const std::vector<int> offsets = {0, 1}, columns = {0};
    const std::vector<double> values = {std::numeric_limits<double>::quiet_NaN()};
    distribute(m, row_1d, {4, 4}, csr_rows(0, offsets, columns, values));
  });
  expect_error<error>({2, 1, 1}, "each of 2 ranks gave the same 1 entry, which", [](const host_mesh& m) {
    const std::vector<int> offsets = {0, 1}, columns = {0};
    distribute(m, row_1d, {4, 4}, csr_rows(0, offsets, columns, std::vector<double>{1}));
  });
}

}  // namespace test_csr_rows
