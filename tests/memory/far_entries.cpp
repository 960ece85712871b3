// SPDX-License-Identifier: Apache-2.0
// Passes over the entries of patterns with far operands: what chunks are given, and the bytes that pass.
#include "partita/memory/far_entries.hpp"

#include <doctest/doctest.h>

#include "partita/local/kernels.hpp"
#include "support/far_place.hpp"
#include "support/ranks.hpp"

namespace test_far_entries {

using namespace test_support;
using local::edge_chunk, local::entry_passes;

TEST_CASE(
    "passes over entries: chunks have every row and entry once, in order, and the bytes of the formula") {
  const auto graph = directed<double>(301, 150);
  const local_index heads = 2, width = 6;
  for (const std::size_t window : {std::size_t{12288}, std::size_t{1} << 15, std::size_t{1} << 22}) {
    far_place place(window);
    auto a = place.put(graph, true, false);
    const block<double> x(graph.cols, width, 1), t(graph.rows, heads, 2), y(graph.rows, width, 3);
    const matrix_view<const double> of_x = place.put(x, true), of_t = place.put(t, true);
    const matrix_view<double> of_y = place.put(y, true);
    std::vector<double> values(static_cast<std::size_t>(graph.end() * heads));
    std::iota(values.begin(), values.end(), 0.0);
    double* const of_values = place.put(values, true);
    entry_passes<host> edges;
    local_index row = 0, entry = a.offsets[0];
    std::uint64_t chunks = 0, fresh = 0, visited = 0, indices = 0;
    const auto padded = [](local_index n) { return (static_cast<std::uint64_t>(n) + 3) / 4 * 4; };
    const auto body = [&](const edge_chunk<double>& c, double* v, matrix_view<const double> of_columns,
                          matrix_view<const double> target, matrix_view<double> out) {
      CHECK(!c.is_whole);
      CHECK(c.first_row == row);
      CHECK(c.first_entry == entry);
      CHECK(of_columns.rows == c.pattern.cols);
      for (local_index i = 0; i < c.pattern.rows; ++i) {
        CHECK(target(i, 1) == t.view()(row + i, 1));
        for (local_index e = c.pattern.offsets[i]; e < c.pattern.offsets[i + 1]; ++e) {
          const local_index place_of_column = c.pattern.columns[e],
                            column = c.global_columns[place_of_column];
          CHECK(column == graph.view().columns[entry + e]);
          CHECK(of_columns(place_of_column, 3) == x.view()(column, 3));
          CHECK(v[e * heads + 1] == (entry + e) * heads + 1);
          v[e * heads] = -column;
        }
        for (local_index j = 0; j < width; ++j) out(i, j) = i + j;
      }
      ++chunks;
      visited += static_cast<std::uint64_t>(c.pattern.rows);
      indices += padded(c.pattern.rows + 1) + padded(c.pattern.entries);
      row += c.splits_last_row ? 0 : c.pattern.rows;
      entry += c.pattern.entries;
    };
    const auto run = [&](auto f) {
      return f(local::updates_entries(of_values, heads), local::gathers(of_x), local::reads(of_t),
               local::writes(of_y));
    };
    const memory::far_traffic before = far_of(place.q)->traffic();
    run([&](auto... o) { edges(place.q, 0, a, {.global_columns = true}, body, o...); });
    const memory::far_traffic found = far_of(place.q)->traffic() - before;
    CHECK(row == graph.rows);
    CHECK(entry == graph.end());
    for (const local::far_chunk& c :
         run([&](auto... o) { return edges.chunks(place.q, 0, a, {.global_columns = true}, o...); })) {
      fresh += static_cast<std::uint64_t>(c.loaded);
      indices += 2 * padded(c.loaded);
    }
    const auto entries = static_cast<std::uint64_t>(graph.end() - graph.offsets[0]),
               rows = static_cast<std::uint64_t>(graph.rows);
    CHECK(found.chunks == chunks);
    CHECK(found.rows_read == fresh);
    CHECK(found.operand_rows == static_cast<std::uint64_t>(graph.cols));
    CHECK(found.read == 4 * indices + 8 * (entries * 2 + fresh * 6 + visited * 2));
    CHECK(found.written == 8 * (entries * 2 + rows * 6));
    const memory::far_traffic expected =
        run([&](auto... o) { return edges.predicted(place.q, 0, a, {.global_columns = true}, o...); });
    CHECK(found.read == expected.read);
    CHECK(found.written == expected.written);
    CHECK(found.chunks == expected.chunks);
    for (local_index e = graph.offsets[0]; e < graph.end(); ++e)
      CHECK(of_values[e * heads] == -graph.view().columns[e]);
  }
}

TEST_CASE("passes over entries: one call with the operands themselves if nothing is far") {
  const auto graph = directed<double>(30, 20);
  far_place place(4096);
  const block<double> x(20, 3, 1);
  entry_passes<host> edges;
  int calls = 0;
  for (const auto* const q : {&place.q, &place.near})
    edges(
        *q, 0, graph.view(), {.global_columns = true, .inverse = true},
        [&](const edge_chunk<double>& c, matrix_view<const double> same) {
          ++calls;
          CHECK(c.is_whole);
          CHECK(c.global_columns == nullptr);
          CHECK(c.pattern.offsets == graph.offsets.data());
          CHECK(same.data == x.data());
          CHECK(c.beta_of_columns(0.5) == 0.5);
        },
        local::gathers(x.view()));
  CHECK(calls == 2);
}

TEST_CASE("passes over entries: a window that does not hold an entry says what it takes") {
  const auto graph = directed<double>(30, 20);
  far_place place(4096);
  const block<double> x(20, 400, 1);
  const matrix_view<const double> of_x = place.put(x, true);
  entry_passes<host> edges;
  expect_error<budget_error>(
      "a pass over far operands takes 6912 bytes for one entry, which a window of near memory of 4096 bytes "
      "does not hold: it must have 7168",
      [&] {
        edges(
            place.q, 0, graph.view(), {}, [](const edge_chunk<double>&, matrix_view<const double>) {},
            local::gathers(of_x));
      });
}

/// Notes what need not stay resident.
class noting_store : public far_store {
 public:
  void* allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { memory_->release(memory, bytes); }
  bool contains(const void* address) const override { return memory_->contains(address); }
  void forget(const void* memory, std::size_t bytes) noexcept override {
    forgotten_.emplace_back(static_cast<const std::byte*>(memory), bytes);
  }
  /// How many of these bytes it was told to forget since the last question.
  std::size_t forgotten_of(std::span<const std::byte> memory) {
    std::vector<bool> pages(memory.size() >> 12, false);
    for (const auto& [begin, bytes] : std::exchange(forgotten_, {}))
      if (begin >= memory.data() && begin < memory.data() + memory.size())
        for (std::size_t at = static_cast<std::size_t>(begin - memory.data()), end = at + bytes; at < end;
             at += 4096)
          if (at >> 12 < pages.size()) pages[at >> 12] = true;
    return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), true)) << 12;
  }

 private:
  std::shared_ptr<mapped_store> memory_ = new_far_store();
  std::vector<std::pair<const std::byte*, std::size_t>> forgotten_;
};

TEST_CASE("passes over entries: far rows that are gathered or added to do not stay resident") {
  const auto store = std::make_shared<noting_store>();
  const device_queue<host> q, near;
  use_far(q, {.store = store, .window = std::size_t{8} << 20, .from = std::size_t{1} << 20});
  const local_index rows = 1000, cols = 24000, width = 100, each = cols / rows;
  buffer<double, host> memory(q, static_cast<std::size_t>(cols) * static_cast<std::size_t>(width));
  const std::span<std::byte> bytes = std::as_writable_bytes(memory.span());
  CHECK(bytes.size() > memory::far_channel<host>::most_resident_bytes);
  REQUIRE(store->contains(memory.data()));
  std::iota(memory.span().begin(), memory.span().end(), 0.0);
  const matrix_view<double> x{memory.data(), cols, width};
  std::vector<local_index> offsets(static_cast<std::size_t>(rows) + 1),
      columns(static_cast<std::size_t>(cols));
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<local_index>(i) * each;
  for (std::size_t e = 0; e < columns.size(); ++e)
    columns[e] = static_cast<local_index>(e) % each * rows + static_cast<local_index>(e) / each;
  const csr_view<double> a{rows, cols, offsets.data(), columns.data(), nullptr, cols};
  entry_passes<host> edges;
  const std::size_t nearly_all = bytes.size() - (std::size_t{1} << 19);
  edges(
      q, 0, a, {.global_columns = true},
      [&](const edge_chunk<double>& c, matrix_view<const double> of_columns) {
        for (local_index e = 0; e < c.pattern.entries; ++e)
          CHECK(of_columns(c.pattern.columns[e], 7) ==
                columns[static_cast<std::size_t>(c.first_entry + e)] * 100.0 + 7);
      },
      local::gathers(x));
  CHECK(store->forgotten_of(bytes) > nearly_all);
  edges(
      q, 0, a, {},
      [&](const edge_chunk<double>&, matrix_view<double> sums) {
        std::fill_n(sums.data, static_cast<std::ptrdiff_t>(sums.rows) * sums.row_stride, 1.0);
      },
      local::adds(x, 1.0));
  CHECK(store->forgotten_of(bytes) > nearly_all);
  for (local_index i = 0; i < cols; ++i) CHECK(x(i, 3) == i * 100.0 + 4);
}

}  // namespace test_far_entries
