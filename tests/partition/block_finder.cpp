// SPDX-License-Identifier: Apache-2.0
// The block of an index, against the bisection of blocking::owner.
#include "partita/partition/block_finder.hpp"

#include <doctest/doctest.h>

#include "partita/partition/policies.hpp"
#include "support/meshes.hpp"

namespace test_block_finder {

using namespace partita;

/// Every set of axes, every index.
void check_finder(const blocking& b) {
  std::size_t wrong = 0;
  for (unsigned bits = 0; bits < 8; ++bits) {
    const axis_set by(bits);
    const partition::block_finder find(b, by);
    CHECK(find.count() == static_cast<std::size_t>(b.shape().size(by)));
    for (std::size_t k = 0; k < find.count(); ++k) wrong += find.block(k) == b.block(by, k) ? 0 : 1;
    for (global_index i = 0; i < b.size(); ++i) {
      const std::size_t k = find(i);
      wrong += k == b.owner(by, i) && find.block(k).contains(i) ? 0 : 1;
    }
  }
  CHECK_MESSAGE(wrong == 0, b.size(), " indices on mesh ", to_string(b.shape()));
}

TEST_CASE("block_finder: even blocks, of which some are empty") {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 9, 12})
    for (const mesh_shape shape : partition::meshes_of(split_3d, ranks))
      for (const nesting order : {nesting::rows, nesting::cols})
        for (const global_index n : {0, 1, 5, 61}) check_finder(blocking::even(n, shape, order));
}

TEST_CASE("block_finder: more indices than entries of its table") {
  // Around the powers of two at which an entry begins to stand for more indices, and blocks of a few.
  for (const global_index n : {4095, 4096, 4097, 8192, 8193, 20011})
    check_finder(blocking::even(n, {3, 2, 2}, nesting::rows));
  check_finder(blocking::given({0, 9000, 0, 3, 1, 0, 11007, 0}, {8, 1, 1}, nesting::rows));
}

TEST_CASE("block_finder: as many indices as there can be") {
  const global_index n = std::numeric_limits<global_index>::max();
  const partition::block_finder find(blocking::even(n, {2, 1, 1}, nesting::rows), axis::row);
  CHECK(find(0) == 0);
  CHECK(find(n / 2) == 0);
  CHECK(find(n - 1) == 1);
}

TEST_CASE("block_finder: uneven blocks, in any places empty ones") {
  check_finder(blocking::given({0, 0, 7, 0}, {4, 1, 1}, nesting::rows));
  check_finder(blocking::given({5, 0, 0, 1, 40, 0}, {6, 2, 1}, nesting::rows));
  check_finder(blocking::given({2, 0, 19}, {3, 2, 2}, nesting::rows));
  check_finder(blocking::given({2, 0, 19}, {2, 3, 2}, nesting::cols));
  std::vector<global_index> weights;
  for (global_index i = 0; i < 53; ++i) weights.push_back(i % 10 == 0 ? 100 : 0);
  check_finder(blocking::balanced(weights, {3, 2, 1}, nesting::rows));
}

}  // namespace test_block_finder
