// SPDX-License-Identifier: Apache-2.0
// Orders of the vertices of small graphs whose orders are known.
#include "partita/partition/orders.hpp"

#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "support/ranks.hpp"

namespace test_partition_orders {

using namespace partita;
using partition::degree_order, partition::parts_in_order, partition::reverse_cuthill_mckee;
using numbers = std::vector<global_index>;

/// The most by which the numbers of two neighbours differ.
global_index bandwidth(const numbers& offsets, const numbers& columns, const numbers& order) {
  numbers place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    place[static_cast<std::size_t>(order[i])] = static_cast<global_index>(i);
  global_index most = 0;
  partition::detail::for_entries(offsets, columns, [&](std::size_t row, std::size_t col) {
    most = std::max(most, std::abs(place[row] - place[col]));
  });
  return most;
}

bool is_permutation_of_all(numbers order) {
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<global_index>(i)) return false;
  return true;
}

TEST_CASE(
    "orders: by degree, of both directions and without loops, and in the old order where they are equal") {
  // 0 -> 1, 2 -> 1, 3 -> 1, 3 -> 2 and a loop at 0
  CHECK(degree_order(numbers{0, 1, 4, 5, 5}, numbers{0, 0, 2, 3, 3}) == numbers{1, 2, 3, 0});
  CHECK(degree_order(numbers{0}, numbers{}).empty());
}

TEST_CASE(
    "orders: reverse Cuthill-McKee numbers a scattered path from end to end, and a grid by its diagonals") {
  // The path 3 - 0 - 4 - 1 - 2, edges in one direction; 5 is alone and 6 - 7 a component.
  const numbers path = {0, 1, 1, 2, 2, 4, 4, 4, 5}, from = {3, 2, 0, 1, 6};
  const numbers order = reverse_cuthill_mckee(path, from);
  REQUIRE(is_permutation_of_all(order));
  CHECK(bandwidth(path, from, order) == 1);
  CHECK(bandwidth(path, from, {0, 1, 2, 3, 4, 5, 6, 7}) == 4);

  constexpr global_index side = 7;  // a grid of 7 x 7, numbered at random
  numbers number(side * side), offsets = {0}, columns;
  std::iota(number.begin(), number.end(), 0);
  base::shuffle(number, random_key{.seed = 3}.word());
  std::vector<numbers> lists(number.size());
  const auto at = [&](global_index i, global_index j) {
    return number[static_cast<std::size_t>(side * i + j)];
  };
  for (global_index i = 0; i < side; ++i)
    for (global_index j = 0; j + 1 < side; ++j) {
      lists[static_cast<std::size_t>(at(i, j))].push_back(at(i, j + 1));
      lists[static_cast<std::size_t>(at(j, i))].push_back(at(j + 1, i));
    }
  for (const numbers& list : lists) {
    columns.insert(columns.end(), list.begin(), list.end());
    offsets.push_back(static_cast<global_index>(columns.size()));
  }
  CHECK(bandwidth(offsets, columns, reverse_cuthill_mckee(offsets, columns)) <= side + 1);
}

TEST_CASE("orders: parts are even blocks of an order") {
  CHECK(parts_in_order(numbers{4, 2, 0, 1, 3}, 2) == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(parts_in_order(numbers{1, 0}, 3) == std::vector<int>{1, 0});
  test_support::expect_error<shape_error>("divided into 0 parts",
                                          [] { (void)parts_in_order(numbers{0}, 0); });
}

TEST_CASE("orders: streamed parts find communities that are numbered at random, and none is too large") {
  constexpr global_index communities = 5, size = 20, n = communities * size;
  numbers number(n), offsets = {0}, columns;
  std::iota(number.begin(), number.end(), 0);
  base::shuffle(number, random_key{.seed = 4}.word());
  std::vector<numbers> lists(n);
  for (global_index v = 0; v < n; ++v)
    for (global_index u = v / size * size; u < v; ++u)  // communities, and an edge from each to the next
      if (u + 1 == v || u % 2 != 0) lists[static_cast<std::size_t>(number[v])].push_back(number[u]);
  for (global_index v = 0; v < n; v += size)
    lists[static_cast<std::size_t>(number[v])].push_back(number[(v + size - 1 + size) % n]);
  for (const numbers& list : lists) {
    columns.insert(columns.end(), list.begin(), list.end());
    offsets.push_back(static_cast<global_index>(columns.size()));
  }
  const std::vector<int> found = partition::streamed_parts(offsets, columns, communities);
  std::vector<int> sizes(communities, 0);
  global_index cut = 0;
  for (const int p : found) ++sizes[static_cast<std::size_t>(p)];
  partition::detail::for_entries(offsets, columns,
                                 [&](std::size_t row, std::size_t col) { cut += found[row] != found[col]; });
  CHECK(*std::ranges::max_element(sizes) <= 22);
  CHECK(cut == communities);
  CHECK(partition::streamed_parts(numbers{0, 0, 0, 0}, numbers{}, 3) == std::vector{0, 1, 2});
  CHECK(partition::streamed_parts(numbers{0}, numbers{}, 3).empty());
  test_support::expect_error<shape_error>("vertices cannot be divided into 0 parts",
                                          [] { partition::streamed_parts(numbers{0}, numbers{}, 0); });
}

}  // namespace test_partition_orders
