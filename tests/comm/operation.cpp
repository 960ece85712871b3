// SPDX-License-Identifier: Apache-2.0
// Operations as values: names, shares, and the one order in which numbers are added up.
#include "partita/comm/operation.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

namespace test_operation {

using namespace partita;

TEST_CASE("operations: shares of an all-reduce tile the buffer, the longer ones first") {
  for (global_index count = 0; count < 20; ++count)
    for (int size = 1; size <= 7; ++size) {
      global_index next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const interval share = comm::share_of(count, rank, size);
        CHECK(share.begin == next);
        CHECK(share.size() == count / size + (rank < count % size ? 1 : 0));
        next = share.end;
      }
      CHECK(next == count);
    }
}

TEST_CASE("operations: offsets, and what errors call them") {
  CHECK(comm::offset_of(std::vector<global_index>{3, 0, 4}, 2) == 3);
  comm::collective op;
  op.kind = operation::all_gather;
  op.type = comm::element_type::f64;
  op.where = std::source_location::current();
  const std::string place = "(operation.cpp:" + std::to_string(op.where.line()) + ")";
  CHECK(describe(op) == "all_gather of f64 " + place);
  CHECK(op.bytes(3) == 24);
  op.splits = true;
  CHECK(describe(op) == "split " + place);
}

TEST_CASE("operations: numbers are added up in the order of ranks, in place or not") {
  const std::vector<double> huge(1000, 1e300), minus(1000, -1e300), one(1000, 1);
  std::vector<double> sum = one;
  const void* const list[] = {huge.data(), minus.data(), sum.data()};
  comm::reduce_in_order(comm::element_type::f64, reduction::sum, list, sum.data(), 1000);
  CHECK(sum == one);
  const void* const other[] = {one.data(), huge.data(), minus.data()};
  comm::reduce_in_order(comm::element_type::f64, reduction::sum, other, sum.data(), 1000);
  CHECK(sum == std::vector<double>(1000, 0));
}

TEST_CASE("operations: sums of bfloat16 are rounded after each rank, and their maxima propagate NaN") {
  using base::bfloat16;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const bfloat16 a[] = {bfloat16(256), bfloat16(1), bfloat16(nan)},
                 b[] = {bfloat16(1), bfloat16(2), bfloat16(3)};
  bfloat16 to[3];
  const void* const list[] = {a, b, b};
  comm::reduce_in_order(comm::element_type::bf16, reduction::sum, list, to, 3);
  CHECK(float{to[0]} == 256);  // 256 + 1 is rounded to 256, twice
  CHECK(float{to[1]} == 5);
  comm::reduce_in_order(comm::element_type::bf16, reduction::max, list, to, 3);
  CHECK(float{to[0]} == 256);
  CHECK(float{to[1]} == 2);
  CHECK(std::isnan(float{to[2]}));
  comm::collective op;
  op.type = comm::element_type::bf16;
  CHECK(op.bytes(3) == 6);
}

TEST_CASE("operations: integers wrap around, and maxima are maxima") {
  const std::int32_t a[] = {std::numeric_limits<std::int32_t>::max(), -5}, b[] = {1, 3};
  std::int32_t to[2];
  const void* const list[] = {a, b};
  comm::reduce_in_order(comm::element_type::i32, reduction::sum, list, to, 2);
  CHECK(to[0] == std::numeric_limits<std::int32_t>::min());
  CHECK(to[1] == -2);
  comm::reduce_in_order(comm::element_type::i32, reduction::max, list, to, 2);
  CHECK(to[0] == a[0]);
  CHECK(to[1] == 3);
}

}  // namespace test_operation
