// SPDX-License-Identifier: Apache-2.0
// Figures of far memory.
#include "partita/memory/far.hpp"

#include <doctest/doctest.h>

namespace test_far {

using namespace partita;

TEST_CASE("far memory: the overlap is the hidden share of the shorter of transfer and compute") {
  const auto overlap = [](double transfer, double compute, double exposed) {
    memory::far_traffic t;
    t.transfer = transfer;
    t.compute = compute;
    t.exposed = exposed;
    return t.overlap();
  };
  CHECK(overlap(2, 3, 2) == 0);
  CHECK(overlap(2, 3, 0) == 1);
  CHECK(overlap(2, 3, 0.5) == 0.75);
  CHECK(overlap(5, 2, 4) == 0.5);
  CHECK(overlap(5, 2, 3) == 1);
  CHECK(overlap(0, 2, 0) == 1);
  CHECK(overlap(2, 3, 2.5) == 0);
}

TEST_CASE("far memory: what has passed since") {
  memory::far_traffic before, after;
  const auto fill = [](memory::far_traffic& t, std::uint64_t unit) {
    t.read = unit;
    t.written = 2 * unit;
    t.chunks = 3 * unit;
    t.rows_read = 5 * unit;
    t.operand_rows = 6 * unit;
    t.transfer = 7.0 * static_cast<double>(unit);
    t.compute = 8.0 * static_cast<double>(unit);
    t.exposed = 9.0 * static_cast<double>(unit);
  };
  fill(before, 1);
  fill(after, 11);
  const memory::far_traffic t = after - before;
  CHECK(t.read == 10);
  CHECK(t.written == 20);
  CHECK(t.chunks == 30);
  CHECK(t.rows_read == 50);
  CHECK(t.operand_rows == 60);
  CHECK(t.transfer == 70);
  CHECK(t.compute == 80);
  CHECK(t.exposed == 90);
}

TEST_CASE("far memory: slots are aligned halves of the window") {
  CHECK(far_options{.window = 1023}.slot_bytes() == 256);
  CHECK(far_options{.window = 1024}.slot_bytes() == 512);
}

TEST_CASE("far memory: the bytes of rows with gaps are those of the rows") {
  CHECK(memory::block_copy{.to_stride = 8, .from_stride = 64, .row_bytes = 8, .rows = 5}.bytes() == 40);
}

}  // namespace test_far
