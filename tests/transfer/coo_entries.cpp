// SPDX-License-Identifier: Apache-2.0
// Sparse matrices built on a device from entries there have the blocks of those built from entries on the
// host.

#include "partita/transfer/coo_entries.hpp"

#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/coo_entries.hpp"
#include "support/matrices.hpp"
#include "support/on_device.hpp"

namespace test_coo_entries {

using namespace test_support;

/// One rank's entries, many of them twice or more, with values whose sums depend on the order.
template <class T>
struct entry_arrays {
  entry_arrays(matrix_shape shape, std::size_t count, int rank) {
    for (std::size_t e = 0; e < count; ++e) {
      const auto at = [&](std::int64_t k) {
        return base::random_uniform(7, static_cast<std::int64_t>(e), 4 * rank + k);
      };
      const auto row = static_cast<global_index>(at(0) * static_cast<double>(shape.rows)),
                 col = static_cast<global_index>(at(1) * static_cast<double>(shape.cols));
      entries.push_back({row / 3, col / 2 * 2, static_cast<T>(at(2) / (1e-3 + at(3)) - 1)});
    }
  }
  local::coo_arrays<T> on(const device_queue<cuda_device>& q) {
    std::vector<global_index> r, c;
    std::vector<T> v;
    for (const triplet<T>& e : entries) {
      r.push_back(e.row);
      c.push_back(e.col);
      v.push_back(e.value);
    }
    rows.emplace(q, r);
    cols.emplace(q, c);
    values.emplace(q, v);
    return {{rows->data(), r.size()}, {cols->data(), c.size()}, {values->data(), v.size()}};
  }

  std::vector<triplet<T>> entries;
  std::optional<on_device<global_index>> rows, cols;
  std::optional<on_device<T>> values;
};

template <class T>
void check_equal(const device_queue<cuda_device>& q, const local::csr_tiles<T, cuda_device>& a,
                 const local::csr_tiles<T, host>& b) {
  CHECK(a.widths == b.widths);
  CHECK(a.entries_of_parts == b.entries_of_parts);
  CHECK(a.restarts.size() == b.restarts.size());
  CHECK(a.entries(q).structure() == std::vector(b.structure.data(), b.structure.data() + b.structure.size()));
  CHECK(a.stored_in_host(q) == std::vector(b.values.data(), b.values.data() + b.values.size()));
}

template <class T>
void check_policy(const communicator& world, const policy& p, mesh_shape on, std::size_t count,
                  std::size_t most) {
  const matrix_shape shape{23, 17};
  const mesh<cuda_device> m(world, on, device_queue<cuda_device>(), most);
  const host_mesh on_host(world, on, device_queue<host>(), most);
  entry_arrays<T> mine(shape, world.rank() == 1 ? 0 : count, world.rank());
  const auto there = mine.on(m.queue());
  const auto a = distribute(m, p, shape, there);
  const auto b =
      distribute(on_host, p, shape, mine.entries, symmetry::general, transfer::sharing::overlapping);
  check_equal(m.queue(), *a.local(), *b.local());
  check_equal(m.queue(), *transposed(a).local(), *transposed(b).local());
  CHECK(distribute(m, p, shape, there, symmetry::one_way).kind() == symmetry::one_way);

  const auto& rows = a.row_blocking();
  const auto& cols = a.col_blocking();
  const auto tiles = transfer::detail::tiles_of_arrays(m, p.sparse, rows, cols, there, 7);
  const std::vector<interval> columns = partition::tile_columns(p.sparse, cols, m.at());
  const auto expected = local::make_csr_tiles<T>(
      on_host.queue(), rows.block(p.sparse.rows, m.at()), columns,
      transfer::send_to_holders<T>(world, on, p.sparse, rows, cols, mine.entries, transfer::side::straight,
                                   {.slice = 7}),
      most, 1, [](std::size_t, global_index, global_index, T sum) { return sum; },
      [](const local::tile_shape&, bool) { return std::optional<local::tile_factors<T>>(); });
  check_equal(m.queue(), *tiles, expected);
}

TEST_CASE("entries on a device: the blocks of entries on the host, bit for bit") {
  on_threads(1, [](const communicator& world) {
    check_policy<float>(world, grid_2d, {1, 1, 1}, 200, base::max_tile_entries);
    check_policy<double>(world, grid_2d, {1, 1, 1}, 200, 30);
    check_policy<double>(world, grid_2d, {1, 1, 1}, 0, 30);
  });
  on_threads(4, [](const communicator& world) {
    check_policy<float>(world, grid_2d, {2, 2, 1}, 60, base::max_tile_entries);
    check_policy<double>(world, feature_column, {1, 4, 1}, 60, base::max_tile_entries);
    check_policy<float>(world, replicated_1_5d, {2, 1, 2}, 60, 20);
  });
}

TEST_CASE("entries on a device: what distribute refuses") {
  on_threads(1, [](const communicator& world) {
    const mesh<cuda_device> m(world, {1, 1, 1});
    entry_arrays<float> mine({9, 9}, 40, 0);
    const auto refused = [&]<class Error>(Error, triplet<float> wrong, const std::string& what) {
      entry_arrays<float> with({9, 9}, 40, 0);
      with.entries[30] = wrong;
      with.entries.push_back({9, 9, 1});
      const auto there = with.on(m.queue());
      expect_error<Error>(what, [&] { distribute(m, grid_2d, {9, 9}, there); });
    };
    refused(shape_error(""), {9, 2, 1}, "entry (9, 2) is outside a matrix of 9 x 9");
    refused(shape_error(""), {2, -1, 1}, "entry (2, -1) is outside a matrix of 9 x 9");
    refused(error(""), {2, 1, -INFINITY}, "entry (2, 1) of a sparse matrix is minus infinite");
    auto there = mine.on(m.queue());
    there.cols = there.cols.first(39);
    expect_error<shape_error>("entries of a sparse matrix have 40 rows, 39 columns and 40 values", [&] {
      distribute(m, grid_2d, {9, 9}, there);
    });
  });
}

}  // namespace test_coo_entries
