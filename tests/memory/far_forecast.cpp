// SPDX-License-Identifier: Apache-2.0
// What operations on far operands will move, and in what time.
#include "partita/memory/far_forecast.hpp"

#include <doctest/doctest.h>

#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"

namespace test_far_forecast {

using namespace partita;
using host_queue = device_queue<host>;

TEST_CASE("a forecast adds operations of the same words, and shows them in the order of their first one") {
  far_forecast f;
  CHECK(f.explain() == "0.000 MB read and 0.000 MB written");
  const memory::far_traffic product{.read = 1'250'499,
                                    .written = 500'500,
                                    .chunks = 7,
                                    .operations = 1,
                                    .near = 3'000'000,
                                    .operand_rows = 100,
                                    .rows_read = 230};
  f.add("product", product);
  f.add("by rows", {.read = 1000, .chunks = 1, .operations = 1, .near = 2000});
  f.add("product", product);
  REQUIRE(f.entries().size() == 2);
  CHECK(f.entries()[0].times == 2);
  CHECK(f.entries()[1].what == "by rows");
  const memory::far_traffic all = f.total();
  CHECK(all.read == 2'501'998);
  CHECK(all.written == 1'001'000);
  CHECK(all.chunks == 15);
  CHECK(all.operations == 3);
  CHECK(all.near == 6'002'000);
  CHECK(all.rows_read == 460);
  CHECK((all - product).operand_rows == 100);
  CHECK(f.explain({.far = 2e6, .near = 1e6}) ==
        "2.502 MB read and 1.001 MB written in 15 chunks, 6.002 MB near, which read each row 2.300 times, "
        "about 6.352 s at 2.000 MB/s far and 1.000 MB/s near\n"
        "  2 x product: 2.501 MB read and 1.001 MB written in 14 chunks, 6.000 MB near, which read each row "
        "2.300 times\n"
        "  1 x by rows: 0.001 MB read and 0.000 MB written in 1 chunk, 0.002 MB near");
}

TEST_CASE("the time of chunks: the longer of transfers and computing, and the shorter of one chunk") {
  const memory::far_traffic t{.read = 600, .written = 200, .chunks = 8, .operations = 2, .near = 300};
  CHECK(memory::far_rates{.far = 100, .near = 100}.seconds(t) == 8 + 3 * 0.25);
  CHECK(memory::far_rates{.far = 400, .near = 100}.seconds(t) == 3 + 2 * 0.25);
  CHECK(memory::far_rates{.far = 100}.seconds(t) == 0);
  CHECK(memory::far_rates{.near = 100}.seconds(t) == 0);
  CHECK(memory::far_rates{.far = 100, .near = 100}.seconds({.read = 800}) == 8);
}

TEST_CASE("rates: at most those that the store is slowed down to, and none where half a window is near") {
  const auto store = test_support::new_far_store();
  const host_queue q, other;
  use_far(q, {.store = store, .window = 1 << 16, .from = 1 << 12, .bytes_per_second = 1e7});
  const memory::far_rates found = memory::measured_far_rates(q);
  CHECK(found.far > 0);
  CHECK(found.far <= 1e7);
  CHECK(found.near > found.far);
  CHECK(far_of(q)->meter().current() == 0);
  use_far(other, {.store = store, .window = 1 << 16, .from = 1 << 16});
  CHECK(memory::measured_far_rates(other).far == 0);
}

TEST_CASE("a rehearsal ends with its scope") {
  const host_queue q;
  use_far(q, {.store = test_support::new_far_store(), .window = 512});
  far_forecast f;
  CHECK(far_of(q)->forecast() == nullptr);
  {
    const memory::far_rehearsal rehearsal(*far_of(q), f);
    CHECK(far_of(q)->forecast() == &f);
  }
  CHECK(far_of(q)->forecast() == nullptr);
}

TEST_CASE("what is rehearsed runs once, and only with far memory") {
  const host_queue q, near;
  use_far(q, {.store = test_support::new_far_store(), .window = 512});
  int runs = 0;
  const auto run = [&] {
    ++runs;
    far_of(q)->forecast()->add("a pass", {.read = 8});
  };
  CHECK(memory::rehearsed(near, run).entries().empty());
  CHECK(memory::rehearsed(q, run).total().read == 8);
  CHECK(runs == 1);
}

TEST_CASE("far elements are read where they are, near ones from a copy") {
  const host_queue q;
  use_far(q, {.store = test_support::new_far_store(), .window = 512, .from = 256});
  const auto reads_in_place = [&](std::size_t size) {
    buffer<double, host> values(q, size);
    std::fill_n(values.data(), size, 3.0);
    return local::read_on_host(q, std::span<const double>(values.span()), [&](std::span<const double> read) {
      CHECK(read.size() == size);
      CHECK(read[size - 1] == 3);
      return read.data() == values.data();
    });
  };
  CHECK(reads_in_place(64));
  CHECK(!reads_in_place(4));
}

}  // namespace test_far_forecast
