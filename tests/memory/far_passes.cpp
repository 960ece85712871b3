// SPDX-License-Identifier: Apache-2.0
// Lists of rows of far operands: the rows and sums of the kernels, with the bytes that travel.
#include "partita/memory/far_passes.hpp"

#include <doctest/doctest.h>

#include "partita/local/kernels.hpp"
#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"

namespace test_far_passes {

using namespace partita;
using host_queue = device_queue<host>;

/// Notes what it is told to expect and to forget.
struct noting {
  static constexpr std::size_t most_resident_bytes = 4 * 3 * sizeof(double);  // of four rows
  static constexpr std::size_t rows_asked_for = 2;
  std::vector<std::vector<local_index>> expected;
  std::vector<std::pair<const void*, std::size_t>> forgotten;
  void expect(const local::operand&, std::span<const local_index> rows) {
    expected.emplace_back(rows.begin(), rows.end());
  }
  void forget(const void* memory, std::size_t bytes) { forgotten.emplace_back(memory, bytes); }
  static bool is_far(const void*) { return true; }
};

TEST_CASE("rows of an ascending list are asked for, visited in parts, and forgotten") {
  std::vector<double> values(std::size_t{14} * 3);
  const matrix_view<double> rows{values.data(), 14, 2, 3};
  const std::vector<local_index> list{1, 3, 4, 5, 9, 13};
  noting c;
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  local::detail::in_resident_parts(
      c, std::span(list), local::reads(rows),
      [&](std::size_t first, std::size_t count) { parts.emplace_back(first, count); });
  CHECK(parts == std::vector<std::pair<std::size_t, std::size_t>>{{0, 3}, {3, 1}, {4, 1}, {5, 1}});
  CHECK(c.expected == std::vector<std::vector<local_index>>{{1, 3, 4, 5, 9}, {13}});
  REQUIRE(c.forgotten.size() == 4);
  CHECK(c.forgotten.front() == std::pair<const void*, std::size_t>(rows.row_data(1), 96));
  CHECK(c.forgotten.back() == std::pair<const void*, std::size_t>(rows.row_data(13), 24));
  parts.clear();
  local::detail::in_resident_parts(
      c, std::span(list).first(2), local::reads(rows.block(0, 0, 4, 2)),
      [&](std::size_t first, std::size_t count) { parts.emplace_back(first, count); });
  CHECK(parts == std::vector<std::pair<std::size_t, std::size_t>>{{0, 2}});
  CHECK(c.forgotten.size() == 4);
  CHECK(c.expected.back() == std::vector<local_index>{1, 3});
  local::detail::in_resident_parts(c, std::span<const local_index>(), local::reads(rows),
                                   [&](std::size_t, std::size_t) { FAIL("no rows"); });
}

template <class T>
buffer<T, host> put(const host_queue& q, const std::vector<T>& values) {
  buffer<T, host> memory(q, values.size());
  copy(q, std::span<const T>(values), memory.span());
  return memory;
}

TEST_CASE("rows of a list are packed, unpacked and added wherever they are, and counted where they are far") {
  const auto store = test_support::new_far_store();
  const host_queue near, far;
  use_far(far, {.store = store, .window = 512});
  constexpr local_index rows = 40, cols = 6, stride = 7;
  std::vector<double> all(rows * stride);
  std::iota(all.begin(), all.end(), 1.0);
  const std::vector<local_index> some{3, 39, 0, 17};
  constexpr std::size_t touched = 4 * cols * sizeof(double), of_list = 4 * sizeof(local_index);
  for (unsigned where = 0; where < 8; ++where) {
    const bool far_list = where & 1U, far_rows = where & 2U, far_packed = where & 4U;
    const auto list = put(far_list ? far : near, some);
    auto memory = put(far_rows ? far : near, all);
    auto packed = put(far_packed ? far : near, std::vector<double>(4 * cols, -1));
    const matrix_view<double> x{memory.data(), rows, cols, stride};
    far_forecast said;
    if (where != 0) {
      const memory::far_rehearsal rehearsal(*far_of(far), said);
      local::pack_rows(far, x, list.span(), packed.data());
      local::unpack_rows(far, packed.data(), list.span(), x);
      local::add_rows(far, packed.data(), list.span(), x);
      CHECK(packed.data()[0] == -1);
      CHECK(x(3, 0) == 22);
    }
    const memory::far_traffic begin = far_of(far)->traffic();
    memory::far_traffic before = begin;
    local::pack_rows(far, x, list.span(), packed.data());
    memory::far_traffic t = far_of(far)->traffic() - before;
    CHECK(t.read == (far_list ? of_list : 0) + (far_rows ? touched : 0));
    CHECK(t.written == (far_packed ? touched : 0));
    for (std::size_t i = 0; i < 4; ++i)
      for (local_index j = 0; j < cols; ++j)
        CHECK(packed.data()[i * cols + static_cast<std::size_t>(j)] ==
              all[static_cast<std::size_t>(some[i] * stride + j)]);
    std::fill_n(memory.data(), all.size(), 0.0);
    before = far_of(far)->traffic();
    local::unpack_rows(far, packed.data(), list.span(), x);
    t = far_of(far)->traffic() - before;
    CHECK(t.read == (far_list ? of_list : 0) + (far_packed ? touched : 0));
    CHECK(t.written == (far_rows ? touched : 0));
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) {
        const bool listed = std::find(some.begin(), some.end(), i) != some.end();
        CHECK(x(i, j) == (listed ? all[static_cast<std::size_t>(i * stride + j)] : 0));
      }
    std::copy(all.begin(), all.end(), memory.data());
    before = far_of(far)->traffic();
    local::add_rows(far, packed.data(), list.span(), x);
    t = far_of(far)->traffic() - before;
    CHECK(t.read == (far_list ? of_list : 0) + (far_rows ? touched : 0) + (far_packed ? touched : 0));
    CHECK(t.written == (far_rows ? touched : 0));
    t = far_of(far)->traffic() - begin;
    CHECK(said.total().read == t.read);
    CHECK(said.total().written == t.written);
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) {
        const bool twice = std::find(some.begin(), some.end(), i) != some.end();
        CHECK(x(i, j) == (twice ? 2 : 1) * all[static_cast<std::size_t>(i * stride + j)]);
      }
  }
  local::pack_rows(far, matrix_view<const double>{}, {}, static_cast<double*>(nullptr));
}

}  // namespace test_far_passes
