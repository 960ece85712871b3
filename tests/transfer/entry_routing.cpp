// SPDX-License-Identifier: Apache-2.0
// Entries on their way to the ranks that hold them, against a search for the tiles of every rank.
#include "partita/transfer/entry_routing.hpp"

#include <map>
#include <tuple>

#include "partita/matrix/sorted_entries.hpp"
#include "support/matrices.hpp"

namespace test_entry_routing {

using namespace test_support;
using transfer::routing_options, transfer::side;
using entry_list = std::vector<triplet<double>>;

constexpr auto ranks_tried = {1, 2, 3, 4, 6, 8, 9, 12};

/// A range that says whether all its values are 1.
struct known_values {
  entry_list entries;
  bool ones;

  auto begin() const { return entries.begin(); }
  auto end() const { return entries.end(); }
  bool has_ones() const { return ones; }
};

/// A weighted graph in which edges and loops are repeated, with other weights or, as `ones`, with 1.
entry_list repeated_entries(matrix_shape shape, bool ones) {
  entry_list entries = sparse_entries(shape, 4);
  for (global_index v = 0; v < std::min(shape.rows, shape.cols); v += 3) entries.push_back({v, v, 0.1});
  for (std::size_t e = entries.size(); e-- > 0;)
    if (e % 3 == 0)
      for (const double factor : {0.1, 1e8, -0.3})
        entries.push_back({entries[e].row, entries[e].col, factor * entries[e].value});
  if (ones)
    for (triplet<double>& e : entries) e.value = 1;
  return entries;
}

entry_list in_order(entry_list entries) {
  std::ranges::sort(entries, {}, [](const triplet<double>& e) { return std::tuple(e.row, e.col, e.value); });
  return entries;
}

/// What the rank at `at` must hold in tile t.
entry_list held(const entry_list& all, layout l, const blocking& rows, const blocking& cols, coordinates at,
                std::size_t t, side of) {
  const interval my_rows = rows.block(l.rows, at), my_cols = partition::tile_columns(l, cols, at, t);
  entry_list mine;
  for (triplet<double> e : all) {
    if (of == side::transposed) std::swap(e.row, e.col);
    if (my_rows.contains(e.row) && my_cols.contains(e.col)) mine.push_back(e);
  }
  return in_order(std::move(mine));
}

/// Tile t of what has arrived, with global indices.
entry_list tile_of(local::arrived_entries<double> arrived, std::size_t t, interval rows,
                   const std::vector<interval>& columns) {
  for (std::size_t other = 0; other < columns.size(); ++other)
    if (other != t) arrived.clear(other);
  return arrived.triplets(rows, columns);
}

struct routed_case {
  matrix_shape shape;
  blocking rows, cols;
};

/// Even blocks; blocks without rows; a matrix that is not square.
std::vector<routed_case> cases_on(mesh_shape shape) {
  std::vector<global_index> uneven;
  for (int q = 0; q < shape.row; ++q) uneven.push_back(q % 2 == 0 ? 0 : 24 / std::max(1, shape.row / 2));
  uneven.back() += 5;
  const global_index n = std::accumulate(uneven.begin(), uneven.end(), global_index{0});
  const auto even = [&](global_index size) { return blocking::even(size, shape, nesting::rows); };
  const blocking given = blocking::given(uneven, shape, nesting::rows);
  return {{{23, 23}, even(23), even(23)}, {{n, n}, given, given}, {{11, 17}, even(11), even(17)}};
}

TEST_CASE("entry_routing: every entry is at all ranks that hold it, and nowhere else") {
  on_usual_meshes(ranks_tried, [&](const host_mesh& m, const policy& p) {
    const coordinates at = m.shape().at(m.world().rank());
    const layout l = p.sparse;
    for (const routed_case& c : cases_on(m.shape()))
      for (const bool ones : {false, true})
        for (const side of : {side::straight, side::transposed}) {
          const entry_list all = repeated_entries(c.shape, ones);
          const blocking &rows = of == side::straight ? c.rows : c.cols,
                         &cols = of == side::straight ? c.cols : c.rows;
          const known_values mine{share(all, m.world().rank(), m.world().size()), ones};
          const auto arrived =
              transfer::send_to_holders<double>(m.world(), m.shape(), l, rows, cols, mine, of, {2, false, 7});
          const std::vector<interval> columns = partition::tile_columns(l, cols, at);
          REQUIRE(arrived.tiles() == columns.size());
          for (std::size_t t = 0; t < columns.size(); ++t)
            CHECK_MESSAGE(in_order(tile_of(arrived, t, rows.block(l.rows, at), columns)) ==
                              held(all, l, rows, cols, at, t, of),
                          p.name, " on mesh ", to_string(m.shape()), ", tile ", t);
        }
  });
}

TEST_CASE("entry_routing: slices of any length, threads, and unequal shares give the same entries") {
  const entry_list all = repeated_entries({23, 23}, false);
  on_threads(4, [&](const communicator& world) {
    const mesh_shape shape{2, 2, 1};
    const blocking b = blocking::even(23, shape, nesting::rows);
    const layout l = grid_2d.sparse;
    const coordinates at = shape.at(world.rank());
    const std::vector<interval> columns = partition::tile_columns(l, b, at);
    // Rank 2 has all of them, or rank q those of its share.
    for (const bool one_has_all : {false, true}) {
      const entry_list mine = one_has_all ? (world.rank() == 2 ? all : entry_list()) : share(all, world);
      for (const int threads : {1, 2, 3})
        for (const global_index slice : {global_index{1}, global_index{7}, global_index{1} << 19}) {
          const auto arrived = transfer::send_to_holders<double>(world, shape, l, b, b, mine, side::straight,
                                                                 {threads, false, slice});
          for (std::size_t t = 0; t < columns.size(); ++t)
            CHECK(in_order(tile_of(arrived, t, b.block(l.rows, at), columns)) ==
                  held(all, l, b, b, at, t, side::straight));
        }
    }
  });
}

TEST_CASE("entry_routing: an observer is told after each slice, in the end of all entries") {
  on_threads(3, [&](const communicator& world) {
    const mesh_shape shape{3, 1, 1};
    const blocking b = blocking::even(23, shape, nesting::rows);
    // Ranks have 20, 10 and no entries: as many slices as the first one.
    const entry_list mine(static_cast<std::size_t>(10 * (2 - world.rank())), {1, 2, 0.5});
    std::vector<global_index> told, expected{7, 14, 20};
    routing_options options{.slice = 7};
    options.observe = [&](global_index done, global_index all) {
      CHECK(all == std::ssize(mine));
      told.push_back(done);
    };
    transfer::send_to_holders<double>(world, shape, row_1d.sparse, b, b, mine, side::straight, options);
    for (global_index& done : expected) done = std::min<global_index>(done, std::ssize(mine));
    CHECK(told == expected);
    // A mesh tells its ledger's observer.
    told.clear();
    const host_mesh m(world, shape);
    m.ledger().observe(options.observe);
    transfer::send_to_holders<double>(m, row_1d.sparse, b, b, mine, side::straight);
    CHECK(told == std::vector<global_index>{std::ssize(mine)});
  });
}

TEST_CASE("entry_routing: none, and an empty matrix") {
  on_threads(3, [&](const communicator& world) {
    const mesh_shape shape{3, 1, 1};
    for (const global_index n : {0, 2}) {
      const blocking b = blocking::even(n, shape, nesting::rows);
      const auto arrived =
          transfer::send_to_holders<double>(world, shape, row_1d.sparse, b, b, entry_list(), side::straight);
      for (std::size_t t = 0; t < arrived.tiles(); ++t) CHECK(arrived.count(t) == 0);
    }
  });
}

TEST_CASE("entry_routing: values of 1 do not travel, and an entry is one index") {
  const entry_list all = repeated_entries({23, 23}, true);
  on_threads(2, [&](const communicator& world) {
    const mesh_shape shape{2, 1, 1};
    const blocking b = blocking::even(23, shape, nesting::rows);
    const auto words = [&](bool ones) {
      world.ledger().clear();
      const known_values mine{share(all, world), ones};
      transfer::send_to_holders<double>(world, shape, row_1d.sparse, b, b, mine, side::straight);
      return world.ledger().total().words;
    };
    global_index from_other = 0;
    for (const triplet<double>& e : share(all, 1 - world.rank(), world.size()))
      if (b.block(row_1d.sparse.rows, shape.at(world.rank())).contains(e.row)) ++from_other;
    const global_index with_ones = words(true);
    CHECK(words(false) - with_ones == from_other);
    CHECK(with_ones == from_other + 2 + all_reduced(1, world.rank(), 2).words);
  });
}

TEST_CASE("entry_routing: sorted, the sum of each place has the same bits for every number of ranks") {
  const entry_list all = repeated_entries({23, 23}, false);
  std::map<std::pair<global_index, global_index>, double> expected;
  for (const triplet<double>& e : in_order(all)) {
    const auto [at, is_new] = expected.try_emplace({e.row, e.col}, e.value);
    if (!is_new) at->second += e.value;
  }
  on_usual_meshes(ranks_tried, [&](const host_mesh& m, const policy& p) {
    const blocking b = blocking::even(23, m.shape(), nesting::rows);
    const coordinates at = m.shape().at(m.world().rank());
    const std::vector<interval> columns = partition::tile_columns(p.sparse, b, at);
    const interval rows = b.block(p.sparse.rows, at);
    auto arrived = transfer::send_to_holders<double>(m.world(), m.shape(), p.sparse, b, b,
                                                     share(all, m.world().rank(), m.world().size()),
                                                     side::straight, {1, true, 7});
    std::size_t wrong = 0;
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const auto tile = local::sort_entries(arrived, t, static_cast<std::size_t>(rows.size()),
                                            static_cast<std::size_t>(columns[t].size()), 1);
      for (const auto& s : tile.segments)
        for (std::size_t e = 0; e < s.places.size(); ++e) {
          const auto row = static_cast<global_index>(local::row_of_place(s.places[e])),
                     col = static_cast<global_index>(local::col_of_place(s.places[e]));
          const auto sum = expected.find({rows.begin + row, columns[t].begin + col});
          wrong += sum != expected.end() && sum->second == s.value(e) ? 0 : 1;
        }
    }
    CHECK_MESSAGE(wrong == 0, p.name, " on mesh ", to_string(m.shape()));
  });
}

TEST_CASE("list_bytes: of an entry as it arrived") {
  CHECK(transfer::list_bytes<float>(true) == 8 + 4);
  CHECK(transfer::list_bytes<float>(false) == 8);
  CHECK(transfer::list_bytes<double>(true) == 8 + 8);
}

}  // namespace test_entry_routing
