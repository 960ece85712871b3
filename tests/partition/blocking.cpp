// SPDX-License-Identifier: Apache-2.0
// Who owns what: blockings, against their definition.
#include "partita/partition/blocking.hpp"

#include <map>
#include <set>

#include "support/matrices.hpp"

namespace test_blocking {

using namespace test_support;

constexpr axis_set row = axis::row, depth = axis::depth;

/// The index of `at` among the blocks that the axes of `by` make, outermost first.
std::size_t nested_index(mesh_shape shape, axis_set by, nesting order, coordinates at) {
  std::size_t index = 0;
  for (axis a : order == nesting::rows ? std::array{axis::row, axis::depth, axis::col}
                                       : std::array{axis::col, axis::depth, axis::row})
    if (by.contains(a)) index = index * static_cast<std::size_t>(shape[a]) + static_cast<std::size_t>(at[a]);
  return index;
}

/// Of p parts of [begin, end), part number k: the first n mod p are one longer.
interval part(interval whole, int p, int k) {
  global_index begin = whole.begin;
  for (int i = 0;; ++i) {
    const global_index size = whole.size() / p + (i < whole.size() % p ? 1 : 0);
    if (i == k) return {begin, begin + size};
    begin += size;
  }
}

/// [0, n) cut along one axis after another, as the design's check does it.
interval evenly(global_index n, mesh_shape shape, std::span<const axis> order, coordinates at) {
  interval block{0, n};
  for (axis a : order) block = part(block, shape[a], at[a]);
  return block;
}

constexpr auto orders = {nesting::rows, nesting::cols};

/// What holds for every blocking of n indices: the blocks of any set of axes tile [0, n) in nesting order,
/// agree with owner, and nest in the blocks of the leading axes of the set.
void check_laws(const blocking& b, global_index n, nesting order) {
  const mesh_shape shape = b.shape();
  CHECK(b.size() == n);
  for (unsigned bits = 0; bits < 8; ++bits) {
    const axis_set by(bits);
    std::map<std::size_t, interval> blocks;
    std::size_t wrong = 0;
    for (int q = 0; q < shape.size(); ++q) {
      const coordinates at = shape.at(q);
      const interval block = b.block(by, at);
      const auto [known, is_new] = blocks.emplace(nested_index(shape, by, order, at), block);
      wrong += !is_new && known->second != block;
      axis_set leading;
      for (axis a : partition::order_of(order)) {
        if (!by.contains(a)) break;
        const interval outer = b.block(leading = leading | a, at);
        wrong += !(outer.begin <= block.begin && block.end <= outer.end);
      }
    }
    CHECK(blocks.size() == static_cast<std::size_t>(shape.size(by)));
    global_index next = 0;
    for (const auto& [index, block] : blocks) {
      wrong += block.begin != next || block.end < block.begin;
      next = block.end;
      for (global_index i = block.begin; i < block.end; ++i) wrong += b.owner(by, i) != index;
    }
    wrong += next != n;
    CHECK_MESSAGE(wrong == 0, n, " indices on mesh ", to_string(shape), " by ", partition::name_of(by));
  }
}

TEST_CASE("blocking: even blocks") {
  for (const mesh_shape shape : every_small_mesh())
    for (const nesting order : orders)
      for (const global_index n : {0, 1, 2, 5, 7, 26, 29, 61}) {
        const blocking b = blocking::even(n, shape, order);
        check_laws(b, n, order);
        const auto list = partition::order_of(order);
        for (std::size_t axes_used = 0; axes_used <= 3; ++axes_used) {
          const std::span<const axis> leading(list.data(), axes_used);
          axis_set by;
          for (axis a : leading) by = by | a;
          for (int q = 0; q < shape.size(); ++q)
            CHECK(b.block(by, shape.at(q)) == evenly(n, shape, leading, shape.at(q)));
        }
      }
  // The example in the header, and one index too many for even halves.
  const blocking b = blocking::even(7, {2, 1, 2}, nesting::rows);
  CHECK(b.block(row, {0, 0, 1}) == interval{0, 4});
  CHECK(b.block(row, {1, 0, 0}) == interval{4, 7});
  CHECK(b.block(row | depth, {0, 0, 1}) == interval{2, 4});
  CHECK(b.block(row | depth, {1, 0, 1}) == interval{6, 7});
  expect_error<shape_error>("a dimension of -1", [] { blocking::even(-1, {1, 1, 1}, nesting::rows); });
}

TEST_CASE("blocking: given sizes") {
  const mesh_shape shape{2, 3, 2};
  const auto given_by = [&](nesting order, std::size_t blocks) {
    std::vector<global_index> sizes;
    for (std::size_t k = 0; k < blocks; ++k) sizes.push_back(static_cast<global_index>((5 * k + 3) % 7));
    axis_set by;
    std::size_t product = 1;
    for (axis a : partition::order_of(order))
      if (product < blocks) by = by | a, product *= static_cast<std::size_t>(shape[a]);
    CHECK(product == blocks);
    const blocking b = blocking::given(sizes, shape, order);
    check_laws(b, std::accumulate(sizes.begin(), sizes.end(), global_index{0}), order);
    for (int q = 0; q < shape.size(); ++q) {
      const coordinates at = shape.at(q);
      const interval block = b.block(by, at);
      CHECK(block.size() == sizes[nested_index(shape, by, order, at)]);
      interval finest = block;  // what is not given is cut evenly
      for (axis a : partition::order_of(order))
        if (!by.contains(a)) finest = part(finest, shape[a], at[a]);
      CHECK(b.block(partition::every_axis, at) == finest);
    }
  };
  for (std::size_t blocks : {1, 2, 4, 12}) given_by(nesting::rows, blocks);
  for (std::size_t blocks : {1, 3, 6, 12}) given_by(nesting::cols, blocks);

  for (std::size_t blocks : {0, 3, 5, 6, 13})
    expect_error<shape_error>(
        std::to_string(blocks) + " block sizes match no set of axes of mesh 2x3x2",
        [&] { blocking::given(std::vector<global_index>(blocks, 1), shape, nesting::rows); });
  expect_error<shape_error>("a block has a negative size", [&] {
    blocking::given({3, -1}, shape, nesting::rows);
  });
}

TEST_CASE("blocking: balanced weights") {
  const std::vector<std::vector<global_index>> cases = {
      {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
      {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3},
      {1000, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 1, 1, 1, 1, 1, 1, 1, 1000},
      {0, 0, 0, 5, 0, 0, 5, 0, 0, 0, 0},
      {0, 0, 0, 0},
      {7, 2},
      {4},
      {}};
  for (const auto& weights : cases)
    for (const mesh_shape shape : every_small_mesh())
      for (const nesting order : orders) {
        const blocking b = blocking::balanced(weights, shape, order);
        check_laws(b, static_cast<global_index>(weights.size()), order);
        // No place for the k-th cut is nearer to k P-ths of the weight.
        std::vector<global_index> before(weights.size() + 1, 0);
        std::inclusive_scan(weights.begin(), weights.end(), before.begin() + 1);
        std::set<global_index> ends;
        for (int q = 0; q < shape.size(); ++q) {
          const coordinates at = shape.at(q);
          const double blocks =
              static_cast<double>(nested_index(shape, partition::every_axis, order, at) + 1);
          const double target = static_cast<double>(before.back()) * blocks / shape.size();
          const auto miss = [&](global_index w) { return std::abs(static_cast<double>(w) - target); };
          double nearest = miss(0);
          for (global_index w : before) nearest = std::min(nearest, miss(w));
          const interval block = b.block(partition::every_axis, at);
          CHECK(miss(before[static_cast<std::size_t>(block.end)]) <= nearest + 1e-9);
        }
      }
  const std::vector<global_index> skewed = {100, 1, 1, 1};
  CHECK(blocking::balanced(skewed, {2, 1, 1}, nesting::rows) ==
        blocking::given({1, 3}, {2, 1, 1}, nesting::rows));
  const std::vector<global_index> halves = {1, 1, 1, 1, 2, 2};
  CHECK(blocking::balanced(halves, {2, 1, 1}, nesting::rows) ==
        blocking::given({4, 2}, {2, 1, 1}, nesting::rows));
}

TEST_CASE("blocking: equal means equal cuts of the same mesh in the same nesting") {
  const mesh_shape shape{2, 1, 1};
  const blocking b = blocking::even(7, shape, nesting::rows);
  CHECK(b == blocking::given({4, 3}, shape, nesting::rows));
  CHECK_FALSE(b == blocking::given({3, 4}, shape, nesting::rows));
  CHECK_FALSE(b == blocking::even(8, shape, nesting::rows));
  CHECK_FALSE(b == blocking::even(7, shape, nesting::cols));
  CHECK_FALSE(b == blocking::even(7, {1, 2, 1}, nesting::rows));
  test_support::on_mesh({1, 2, 1}, [&](const mesh<host>& m) {
    const blocking cols = blocking::even(3, m.shape(), nesting::cols);
    using matrix = dense<double, replicated, host>;
    expect_error<shape_error>("blockings of mesh 2x1x1 given to a matrix on mesh 1x2x1",
                              [&] { matrix(m, b, cols); });
  });
}

}  // namespace test_blocking
