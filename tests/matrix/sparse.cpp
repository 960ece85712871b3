// SPDX-License-Identifier: Apache-2.0
// Sparse matrices from entries that the ranks hold between them: who holds what, on every sparse layout.

#include <map>

#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_sparse {

using namespace test_support;

using entry = triplet<double>;
using entries_of = std::map<std::pair<global_index, global_index>, double>;
using test_support::host_mesh;
using host_sparse = sparse<double, dynamic_layout, host>;

/// Every layout that a sparse matrix may have; the policies' are among them.
constexpr auto sparse_layouts = {layout{},
                                 layout{axis::row, {}},
                                 layout{{}, axis::col},
                                 layout{{}, axis::depth},
                                 layout{{}, axis::col | axis::depth},
                                 layout{axis::row, axis::col},
                                 layout{axis::row, axis::depth},
                                 layout{axis::row, axis::col | axis::depth}};

/// About a third of all places, in rows and columns that are not multiples of 5; some of them given in two
/// parts. Values are multiples of 1/8, so that sums are exact in any order.
std::vector<entry> scattered(matrix_shape shape) {
  std::vector<entry> entries;
  const std::uint64_t word = random_key{5, 0, 0}.word();
  const auto eighths = [](std::uint64_t bits) { return static_cast<double>(bits % 64 + 1) / 8; };
  for (global_index j = 0; j < shape.cols; ++j)
    for (global_index i = shape.rows - 1; i >= 0; --i) {
      const std::uint64_t bits = base::random_bits(word, i, j);
      if (bits % 3 != 0 || i % 5 == 4 || j % 5 == 3) continue;
      entries.push_back({i, j, eighths(bits >> 8)});
    }
  for (std::size_t k = 0, n = entries.size(); k < n; k += 3)
    entries.push_back({entries[k].row, entries[k].col, eighths(k)});
  return entries;
}

entries_of summed(const std::vector<entry>& entries) {
  entries_of sums;
  for (const entry& e : entries) sums[{e.row, e.col}] += e.value;
  return sums;
}
std::vector<entry> swapped(std::vector<entry> entries) {
  for (entry& e : entries) std::swap(e.row, e.col);
  return entries;
}

/// How the entries are spread before they are distributed.
enum class spread { dealt, last_alone, every_third };
constexpr auto spreads = {spread::dealt, spread::last_alone, spread::every_third};

std::vector<entry> share(const std::vector<entry>& all, spread how, const host_mesh& m) {
  const int rank = m.rank(), ranks = m.size();
  std::vector<entry> mine;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto owner = how == spread::dealt ? base::random_bits(3, static_cast<std::int64_t>(k), 0) %
                                                  static_cast<unsigned>(ranks)
                       : how == spread::last_alone ? static_cast<std::uint64_t>(ranks - 1)
                                                   : k % static_cast<unsigned>((ranks + 2) / 3) * 3;
    if (owner == static_cast<std::uint64_t>(rank)) mine.push_back(all[k]);
  }
  return mine;
}
std::span<const entry> in(const std::vector<entry>& v) { return v; }

host_sparse make(const host_mesh& m, layout l, matrix_shape shape, const std::vector<entry>& all,
                 spread how = spread::dealt, symmetry kind = symmetry::general) {
  return distribute(m, l, shape, share(all, how, m), kind);
}

/// The rank's entries, read from its tiles: tile t has the columns of row block t, cut further by where the
/// rank stands along col and depth.
entries_of held(const host_sparse& a) {
  const layout l = a.layout();
  const local::csr_tiles<double, host>& block = *a.local();
  const mesh_shape shape = a.mesh().shape();
  const interval rows = a.row_blocking().block(l.rows, a.mesh().at());
  const auto count = static_cast<std::size_t>(l.rows.empty() ? 1 : shape.row);
  entries_of found;
  std::size_t nonzeros = 0;
  bool ascending = true, inside = true;
  CHECK(block.rows == rows.size());
  CHECK(block.count() == count);
  CHECK(block.structure.size() == block.offsets_size() + block.nonzeros);
  CHECK(block.values.size() == block.nonzeros);
  for (std::size_t t = 0; t < block.count(); ++t) {
    coordinates at = a.mesh().at();
    at.row = static_cast<int>(t);
    const interval columns = a.col_blocking().block(l.rows | l.cols, at);
    CHECK(block.widths[t] == columns.size());
    local_index next_row = 0;
    for (const local::csr_slice<double>& part : block.parts(t)) {
      const local::csr_view<double>& tile = part.entries;
      CHECK(part.first_row == next_row);
      CHECK(part.base + static_cast<std::size_t>(tile.offsets[0]) == nonzeros);
      CHECK(static_cast<std::size_t>(tile.nonzeros()) <= a.mesh().tile_entries());
      CHECK(part.base % 4 == 0);
      next_row += tile.rows;
      nonzeros += static_cast<std::size_t>(tile.nonzeros());
      for (local_index i = 0; i < tile.rows; ++i)
        for (local_index k = tile.offsets[i]; k < tile.offsets[i + 1]; ++k) {
          ascending = ascending && (k == tile.offsets[i] || tile.columns[k - 1] < tile.columns[k]);
          inside = inside && 0 <= tile.columns[k] && tile.columns[k] < tile.cols;
          found[{rows.begin + part.first_row + i, columns.begin + tile.columns[k]}] = tile.values[k];
        }
    }
    CHECK(next_row == block.rows);
  }
  CHECK(ascending);
  CHECK(inside);
  CHECK(nonzeros == block.nonzeros);
  CHECK(found.size() == block.nonzeros);  // no place twice
  return found;
}

/// What the rank must hold: the rows of its row block; the columns whose owners, as rows of a dense operand,
/// stand where it stands along the axes that cut A's columns.
entries_of owed(const entries_of& all, const blocking& rows, const blocking& cols, layout l, coordinates at) {
  entries_of mine;
  for (const auto& [place, value] : all) {
    bool holds = rows.block(l.rows, at).contains(place.first), in_columns = false;
    coordinates owner = at;
    for (owner.row = 0; owner.row < cols.shape().row; ++owner.row)
      in_columns = in_columns || cols.block(l.rows | l.cols, owner).contains(place.second);
    if (holds && in_columns) mine[place] = value;
  }
  return mine;
}

bool same_tiles(const local::csr_tiles<double, host>& a, const local::csr_tiles<double, host>& b) {
  const auto equal = [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::equal(x.data(), x.data() + x.size(), y.data());
  };
  return a.rows == b.rows && a.widths == b.widths && a.nonzeros == b.nonzeros &&
         equal(a.structure, b.structure) && equal(a.values, b.values);
}

/// Everything about one matrix in one layout.
void check_distributed(const host_mesh& m, const host_sparse& a, const std::vector<entry>& entries) {
  const entries_of all = summed(entries), mine = held(a);
  CHECK_MESSAGE(mine == owed(all, a.row_blocking(), a.col_blocking(), a.layout(), m.at()),
                to_string(a.shape()), " on mesh ", to_string(m.shape()), ", ", to_string(a.layout()),
                ", rank ", m.rank());
  CHECK(held(transposed(a)) ==
        owed(summed(swapped(entries)), a.col_blocking(), a.row_blocking(), a.layout(), m.at()));

  // Every entry is somewhere, once for each place along the axes that cut nothing.
  std::vector<global_index> copies(all.size() + 1, 0);
  std::size_t k = 0;
  for (const auto& place : all) copies[k++] = mine.contains(place.first) ? 1 : 0;
  m.world().all_reduce(std::span<global_index>(copies));
  copies.pop_back();
  CHECK(copies ==
        std::vector<global_index>(all.size(), m.shape().size(partition::every_axis - a.layout().used())));
}

constexpr auto meshes = {mesh_shape{1, 1, 1}, mesh_shape{4, 1, 1}, mesh_shape{1, 3, 1}, mesh_shape{1, 1, 2},
                         mesh_shape{2, 2, 1}, mesh_shape{3, 2, 1}, mesh_shape{3, 1, 2}, mesh_shape{1, 2, 3},
                         mesh_shape{2, 2, 3}, mesh_shape{3, 3, 3}};

/// body(mesh, layout) on every mesh for every layout.
void everywhere(auto body) {
  for (const mesh_shape shape : meshes)
    on_mesh(shape, [&](const host_mesh& m) {
      for (const layout l : sparse_layouts) body(m, l);
    });
}

TEST_CASE("distribute: every rank holds its entries and no others, however they were spread") {
  for (const matrix_shape shape :
       {matrix_shape{19, 19}, matrix_shape{23, 14}, matrix_shape{6, 31}, matrix_shape{2, 2}}) {
    const std::vector<entry> entries = scattered(shape);
    everywhere([&](const host_mesh& m, layout l) {
      const auto a = make(m, l, shape, entries);
      CHECK(a.shape() == shape);
      check_distributed(m, a, entries);
      for (const spread how : spreads)
        CHECK(same_tiles(*make(m, l, shape, entries, how).local(), *a.local()));
    });
  }
}

TEST_CASE("distribute: blocks in parts of few entries hold the same") {
  const matrix_shape shape{19, 23};
  const std::vector<entry> entries = scattered(shape);
  for (const std::size_t most : {12, 13, 20, 50})
    everywhere([&](const host_mesh& m, layout l) {
      const host_mesh in_parts(m.world(), m.shape(), m.queue(), most);
      const auto a = make(in_parts, l, shape, entries);
      check_distributed(in_parts, a, entries);
      if (m.size() == 1) CHECK(a.local()->restarts.size() + 1 >= entries_of(held(a)).size() / most);
    });
  expect_error<shape_error>(
      {2, 1, 1}, "row 4 has 3 entries in one tile of a sparse block, which holds no more than 2",
      [](const host_mesh& m) {
        const host_mesh in_parts(m.world(), m.shape(), m.queue(), 2);
        const std::vector<entry> long_row = {{0, 0, 1}, {4, 1, 1}, {4, 0, 1}, {4, 2, 1}, {4, 5, 1}};
        make(in_parts, row_1d.sparse, {6, 6}, long_row);
      });
}

TEST_CASE("distribute: blockings of one's own") {
  const matrix_shape shape{12, 15};
  const std::vector<entry> entries = scattered(shape);
  std::vector<global_index> weights(12, 0);
  for (const entry& e : entries) ++weights[static_cast<std::size_t>(e.row)];
  everywhere([&](const host_mesh& m, layout l) {
    const blocking rows = blocking::balanced(weights, m.shape(), nesting::rows);
    std::vector<global_index> sizes(static_cast<std::size_t>(m.shape().row), 0);
    sizes.front() = 2, sizes.back() += 13;
    const blocking cols =
        blocking::given(sizes.size() == 1 ? std::vector<global_index>{15} : sizes, m.shape(), nesting::rows);
    const auto a = distribute(m, l, rows, cols, share(entries, spread::dealt, m));
    CHECK(a.row_blocking() == rows);
    CHECK(a.col_blocking() == cols);
    check_distributed(m, a, entries);
  });
}

TEST_CASE("distribute: duplicates add up, whoever brings them") {
  everywhere([](const host_mesh& m, layout l) {
    const std::vector<entry> mine = {{3, 1, 0.5}, {3, 1, 0.25}, {0, 4, 1.0 + m.rank()}};
    const auto a = distribute(m, l, matrix_shape{5, 5}, mine);
    const double p = m.size();
    check_distributed(m, a, {{3, 1, 0.75 * p}, {0, 4, p + p * (p - 1) / 2}});
  });
}

TEST_CASE("distribute: no entries, no rows, no columns") {
  for (const matrix_shape shape :
       {matrix_shape{7, 7}, matrix_shape{0, 5}, matrix_shape{5, 0}, matrix_shape{0, 0}, matrix_shape{1, 1}})
    everywhere([&](const host_mesh& m, layout l) { check_distributed(m, make(m, l, shape, {}), {}); });
  // One entry in the last row and column.
  everywhere([](const host_mesh& m, layout l) {
    const std::vector<entry> corner = {{6, 8, 2.5}};
    check_distributed(m, make(m, l, {7, 9}, corner), corner);
  });
}

TEST_CASE("transposed: the blocks of the transposed matrix") {
  for (const matrix_shape shape : {matrix_shape{17, 17}, matrix_shape{9, 20}}) {
    const std::vector<entry> entries = scattered(shape);
    everywhere([&](const host_mesh& m, layout l) {
      const auto a = make(m, l, shape, entries);
      const auto t = make(m, l, {shape.cols, shape.rows}, swapped(entries));
      CHECK(transposed(a).shape() == t.shape());
      CHECK(transposed(a).row_blocking() == t.row_blocking());
      CHECK(transposed(a).col_blocking() == t.col_blocking());
      CHECK(same_tiles(*transposed(a).local(), *t.local()));
      CHECK(same_tiles(*transposed(t).local(), *a.local()));
      CHECK(transposed(transposed(a)).local() == a.local());
    });
  }
}

/// Symmetric, with a diagonal.
std::vector<entry> mirrored(global_index n) {
  std::vector<entry> entries;
  for (const auto& [place, value] : summed(scattered({n, n}))) {
    if (place.first > place.second) continue;
    entries.push_back({place.first, place.second, value});
    if (place.first < place.second) entries.push_back({place.second, place.first, value});
  }
  return entries;
}

TEST_CASE("symmetric: is_symmetric sees values and pattern") {
  for (const mesh_shape shape : meshes)
    on_mesh(shape, [](const host_mesh& m) {
      const auto symmetric = [&](const std::vector<entry>& all, spread how) {
        const std::vector<entry> mine = share(all, how, m);
        m.ledger().clear();
        const bool answer = is_symmetric(m.world(), in(mine));
        test_support::same(test_support::heard(m), test_support::all_reduced(2, m.rank(), m.size()),
                           "is_symmetric");
        return answer;
      };
      const std::vector<entry> good = mirrored(13);
      std::vector<entry> other_value = good, no_mirror = good, moved = good;
      const auto off = std::find_if(good.begin(), good.end(), [](const entry& e) { return e.row != e.col; });
      const auto k = off - good.begin();
      other_value[static_cast<std::size_t>(k)].value += 0.125;
      no_mirror.erase(no_mirror.begin() + k);
      moved[static_cast<std::size_t>(k)].row = 12;
      for (const spread how : spreads) {
        CHECK(symmetric(good, how));
        CHECK(symmetric({}, how));
        CHECK(symmetric({{2, 2, 1.5}}, how));
        CHECK_FALSE(symmetric(other_value, how));
        CHECK_FALSE(symmetric(no_mirror, how));
        CHECK_FALSE(symmetric(moved, how));
        CHECK_FALSE(symmetric({{0, 1, 1}, {1, 0, -1}}, how));
        CHECK_FALSE(symmetric({{0, 1, 1}, {2, 0, 1}}, how));
      }
    });
}

TEST_CASE("symmetric: the tag shares the blocks, and is refused where it is a lie") {
  const std::vector<entry> good = mirrored(13);
  everywhere([&](const host_mesh& m, layout l) {
    const auto a = make(m, l, {13, 13}, good, spread::dealt, symmetry::symmetric);
    check_distributed(m, a, good);
    CHECK(transposed(a).local() == a.local());
  });
  const auto refused = [&](matrix_shape shape, const std::vector<entry>& entries) {
    expect_error<shape_error>({2, 2, 1},
                              "a matrix of " + to_string(shape) + " was declared symmetric but is not",
                              [&](const host_mesh& m) {
                                make(m, grid_2d.sparse, shape, entries, spread::dealt, symmetry::symmetric);
                              });
  };
  refused({13, 13}, {{0, 1, 1}, {1, 0, 2}});
  refused({13, 13}, {{5, 7, 1}});
  refused({13, 14}, {});
}

TEST_CASE("distribute: the transpose of a matrix that goes one way has no entries of its own") {
  everywhere([&](const host_mesh& m, layout l) {
    const auto a = make(m, l, {4, 6}, {{0, 5, 1}}, spread::dealt, symmetry::one_way);
    const auto t = transposed(a);
    for (const auto& one : {a, t}) CHECK(one.kind() == symmetry::one_way);
    CHECK(t.shape() == matrix_shape{6, 4});
    CHECK(t.row_blocking() == a.col_blocking());
    CHECK(t.row_range() == a.col_blocking().block(l.rows, m.at()));
    CHECK(a.is_stored());
    CHECK(!t.is_stored());
    CHECK(transposed(t).local() == a.local());
  });
  expect_error<error>(
      {2, 1, 1}, "local: a matrix of 6 x 4 has no entries of its own: it is the transpose of one",
      [](const host_mesh& m) {
        (void)transposed(make(m, row_1d.sparse, {4, 6}, {{0, 5, 1}}, spread::dealt, symmetry::one_way))
            .local();
      });
}

TEST_CASE("sparse: static layouts become dynamic, and back with a check") {
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    const auto a = distribute<grid_2d.sparse>(m, {5, 5}, std::vector<entry>{{1, 2, 0.5 + m.rank()}});
    const host_sparse b = a;
    CHECK(b.layout() == grid_2d.sparse);
    CHECK(sparse<double, grid_2d.sparse, host>(b).local() == a.local());
    CHECK_THROWS_AS((sparse<double, row_1d.sparse, host>(b)), shape_error);
    CHECK_THROWS_AS(make(m, {axis::col, {}}, {5, 5}, {}), shape_error);
    CHECK_THROWS_AS(make(m, {axis::row, axis::row}, {5, 5}, {}), shape_error);
  });
}

TEST_CASE("sparse: nothing can be asked of a matrix that was moved from") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    host_sparse a = make(m, row_1d.sparse, {4, 6}, {{0, 5, 1}});
    const host_sparse b = std::move(a);
    const auto gone = [](auto act) {
      expect_error<error>("a matrix was used after it had been moved from", act);
    };
    gone([&] { a.mesh(); });
    gone([&] { a.shape(); });
    gone([&] { a.row_range(); });
    gone([&] { a.tile_columns(0); });
    gone([&] { a.local(); });
    gone([&] { (void)transposed(a); });
    a = b;
    CHECK(a.shape() == matrix_shape{4, 6});
  });
}

}  // namespace test_sparse
