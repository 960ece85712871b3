// SPDX-License-Identifier: Apache-2.0
// Seconds of kernels from measurements of others.
#include "partita/memory/kernel_rates.hpp"

#include <doctest/doctest.h>

namespace test_kernel_rates {

using namespace partita;
using memory::kernel_call, memory::kernel_rates;

/// A product whose rows are all alike.
kernel_call product(double rows, double entries, double row_bytes) {
  return {.kernel = "product",
          .rows = rows,
          .entries = entries,
          .row_bytes = row_bytes,
          .table_bytes = rows * row_bytes,
          .bytes = (rows + entries) * row_bytes};
}

TEST_CASE("kernel rates: a call of the sizes of a measurement takes as long, whatever else was measured") {
  kernel_rates rates;
  CHECK(rates.empty());
  for (const double width : {16, 64, 256})
    for (const double rows : {100, 1000, 10'000})
      rates.add(product(rows, 8 * rows, width), 3e-7 * rows * width + 1e-6);
  CHECK(!rates.empty());
  for (const double width : {16, 64, 256})
    for (const double rows : {100, 1000, 10'000})
      CHECK(rates.seconds(product(rows, 8 * rows, width)) == 3e-7 * rows * width + 1e-6);
}

TEST_CASE("kernel rates: between measurements, and beyond them, the time for what is touched") {
  kernel_rates rates;
  const kernel_call small = product(1000, 8000, 16), large = product(1000, 8000, 256);
  rates.add(small, 4e-9 * small.bytes);
  CHECK(rates.seconds(large) == doctest::Approx(4e-9 * large.bytes));
  rates.add(large, 1e-9 * large.bytes);
  const kernel_call between = product(1000, 8000, 64);
  const double rate = rates.seconds(between) / between.bytes;
  CHECK(rate > 1e-9);
  CHECK(rate < 4e-9);
  const kernel_call nearer = product(1000, 8000, 32);
  CHECK(rates.seconds(nearer) / nearer.bytes > rate);
}

TEST_CASE("kernel rates: measurements of equal sizes are averaged, by how often they were made") {
  kernel_rates rates;
  const kernel_call call = product(1024, 8192, 64);
  rates.add(call, 2);
  rates.add(call, 4);
  CHECK(rates.seconds(call) == 3);
  rates.add(call, 11, 2);
  CHECK(rates.seconds(call) == 7);
  int samples = 0;
  rates.for_each([&](const std::string& name, const kernel_rates::sample& s) {
    CHECK(name == "product");
    CHECK(s.times == 4);
    CHECK(s.seconds == 7);
    ++samples;
  });
  CHECK(samples == 1);
  rates.add(product(2048, 16384, 64), 1);
  CHECK(rates.seconds(call) == 7);
}

TEST_CASE(
    "kernel rates: calls that touch nothing take nothing; a kernel that was not measured has a family") {
  kernel_rates rates;
  rates.add({.kernel = "product"}, 1);
  CHECK(rates.empty());
  CHECK(rates.seconds({.kernel = "product"}) == 0);
  CHECK_THROWS_WITH_AS(rates.seconds(product(1, 1, 8)), "there is no measurement of the kernel \"product\"",
                       input_error);
  const auto rows = [](const char* what, double bytes) {
    return kernel_call{.kernel = what, .rows = 8, .row_bytes = 8, .bytes = bytes};
  };
  rates.add(rows("rows: fill", 64), 1);
  rates.add(rows("rows: dot", 128), 5);
  CHECK(rates.seconds(rows("rows: sum", 64)) == 1);
  CHECK(rates.seconds(rows("rows: sum", 128)) == 5);
  CHECK(rates.seconds(rows("rows: fill", 128)) == doctest::Approx(2));
  CHECK_THROWS_AS(rates.seconds(product(1, 1, 8)), input_error);
}

TEST_CASE("kernel rates: what is assumed, but for kernels of which others of their family were measured") {
  kernel_rates rates(memory::assumed_rates{.latency = 2, .bandwidth = 4, .multiplications = 8});
  CHECK(!rates.empty());
  const kernel_call read{.kernel = "gemm", .rows = 1, .bytes = 64, .work = 80};
  kernel_call multiplied = read;
  multiplied.work = 320;
  CHECK(rates.seconds(read) == 2 + 64 / 4);
  CHECK(rates.seconds(multiplied) == 2 + 320 / 8);
  CHECK(rates.seconds({.kernel = "gemm"}) == 0);
  rates.add(multiplied, 7);
  CHECK(rates.seconds(multiplied) == 7);
  CHECK(rates.seconds({.kernel = "rows: sum", .rows = 1, .bytes = 64}) == 18);
  const kernel_rates by_rows([](const kernel_call& c) { return c.rows; });
  CHECK(by_rows.seconds({.kernel = "list", .rows = 3, .bytes = 8}) == 3);
}

}  // namespace test_kernel_rates
