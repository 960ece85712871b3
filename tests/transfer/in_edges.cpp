// SPDX-License-Identifier: Apache-2.0
// The in-edges of own vertices, under every policy.
#include "partita/transfer/in_edges.hpp"

#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"

namespace test_in_edges {

using namespace test_support;

/// The columns of a pattern of one tile, one row after another.
std::vector<local_index> columns_of(const device_queue<host>& q,
                                    const local::csr_tiles<double, host>& pattern) {
  CHECK(pattern.count() == 1);
  const local::entry_lists entries = pattern.entries(q);
  std::vector<local_index> columns;
  for (std::size_t i = 0; i < static_cast<std::size_t>(pattern.rows); ++i)
    for (std::size_t e = entries.begin(0, i); e < entries.end(0, i); ++e)
      columns.push_back(entries.column(e));
  return columns;
}

/// The rows and columns of a pattern of one tile, by rows.
std::vector<std::array<local_index, 2>> entries_of(const device_queue<host>& q,
                                                   const local::csr_tiles<double, host>& pattern) {
  const local::entry_lists lists = pattern.entries(q);
  std::vector<std::array<local_index, 2>> entries;
  for (std::size_t i = 0; i < static_cast<std::size_t>(pattern.rows); ++i)
    for (std::size_t e = lists.begin(0, i); e < lists.end(0, i); ++e)
      entries.push_back({static_cast<local_index>(i), lists.column(e)});
  return entries;
}

TEST_CASE("in-edges are whole rows in the order of columns, and those of own vertices among them") {
  constexpr global_index n = 31;
  const auto entries = sparse_entries({n, n}, 4);
  const auto sources = [&](interval targets) {
    std::vector<local_index> columns;
    for (const auto& e : entries)
      if (targets.contains(e.row)) columns.push_back(static_cast<local_index>(e.col));
    return columns;
  };
  for (const std::size_t most : {base::max_tile_entries, std::size_t{13}})
    for_each_mesh(std::array{1, 2, 4, 6, 9, 12}, [&](const policy& p, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const host_mesh m(world, shape, device_queue<host>(), most);
        const auto a = distribute(m, p.sparse, {n, n}, share(entries, m));
        const transfer::in_edges<double, host> found(a);
        CHECK(found.range() == a.row_range());
        CHECK(columns_of(m.queue(), found.all_rows()) == sources(found.range()));
        CHECK(found.own() == a.row_blocking().block(vertex_rows.rows, m.at()));
        const std::vector<local_index> own = sources(found.own());
        CHECK(columns_of(m.queue(), found.own_rows()) == own);
        CHECK(std::vector<local_index>(found.own_columns().begin(), found.own_columns().end()) == own);

        const std::vector<global_index> needed = found.needed();
        CHECK(std::is_sorted(needed.begin(), needed.end()));
        const auto exchange = found.make_halo();
        CHECK(exchange.table_rows() == found.own().size() + static_cast<global_index>(needed.size()));
        const auto out = found.out_rows(exchange);
        CHECK(out.rows == exchange.table_rows());
        CHECK(out.widths == std::vector{static_cast<local_index>(found.own().size())});
        auto turned = entries_of(m.queue(), found.own_rows(exchange));
        for (auto& e : turned) std::swap(e[0], e[1]);
        std::ranges::sort(turned);
        CHECK(entries_of(m.queue(), out) == turned);
        const std::vector<local_index> positions = columns_of(m.queue(), found.own_rows(exchange));
        REQUIRE(positions.size() == own.size());
        for (std::size_t e = 0; e < own.size(); ++e) {
          const global_index at = positions[e] - found.own().size();
          CHECK((at < 0 ? found.own().begin + positions[e] : needed[static_cast<std::size_t>(at)]) == own[e]);
        }
      });
    });
}

TEST_CASE("far memory: the rows of a halo and their sums are what they are in near memory") {
  constexpr global_index n = 61;
  const auto store = new_far_store();
  on_mesh({3, 2, 1}, [&](const host_mesh& near) {
    const device_queue<host> q;
    use_far(q, {.store = store, .window = 3072});
    const host_mesh far(near.world(), near.shape(), q);
    const auto sums_on = [](const host_mesh& m) {
      const blocking rows = blocking::even(n, m.shape(), nesting::rows);
      const interval own = rows.block(vertex_rows.rows, m.at());
      std::vector<global_index> needed;
      for (global_index v = 0; v < n; ++v)
        if (!own.contains(v) && v % 4 != m.rank() % 4) needed.push_back(v);
      transfer::halo<double, host> exchange(m, rows, needed);
      auto x = generate<vertex_rows, double>(m, {n, 3}, field(0));
      const auto size = static_cast<local_index>(exchange.table_rows());
      buffer<double, host> memory(m.queue(), static_cast<std::size_t>(size) * 3);
      const matrix_view<double> table{memory.data(), size, 3, 3};
      exchange.gather(x.local(), table);
      exchange.scatter_add(table, x.local());
      return collect(x);
    };
    CHECK(sums_on(far) == sums_on(near));
    CHECK(far_of(q)->traffic().written > 0);
  });
}

}  // namespace test_in_edges
