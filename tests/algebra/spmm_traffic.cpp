// SPDX-License-Identifier: Apache-2.0
// What each policy moves, against closed forms written here from n, f, nnz and the mesh alone.

#include "partita/algebra/spmm.hpp"
#include "partita/memory/observed_passes.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_ledger {

using namespace test_support;

/// The size of piece i of n cut into p: the first n mod p are one longer.
global_index piece(global_index n, int p, int i) { return n / p + (i < n % p ? 1 : 0); }

/// What every rank receives in one product with whole blocks exchanged.
void on_every_rank(const policy& p, layout dense_layout, mesh_shape shape, matrix_shape size,
                   spmm_options options,
                   const std::function<void(const ledger&, coordinates, global_index)>& check) {
  const auto entries = sparse_entries({size.rows, size.rows}, 3);
  with_mesh(shape, [&](const host_mesh& m) {
    const auto mine = share(entries, m);
    const auto a = distribute(m, p, {size.rows, size.rows}, mine);
    const auto x = generate<double>(m, dense_layout, size, field(0));
    dense<double, dynamic_layout, host> y(m, dense_layout, a.row_blocking(), x.col_blocking());
    spmm_plan plan(a, x, options);
    m.ledger().clear();
    plan(x, y);
    CHECK(m.ledger().total() == plan.predicted());
    check(m.ledger(), m.at(), static_cast<global_index>(a.local()->nonzeros));
  });
}
/// The same where X and Y are in the policy's layout.
void on_every_rank(const policy& p, mesh_shape shape, matrix_shape size, stationary keep,
                   const std::function<void(const ledger&, coordinates, global_index)>& check) {
  on_every_rank(p, p.dense, shape, size, {keep, row_exchange::full}, check);
}

traffic of(const ledger& l, operation kind, const char* axis) {
  return l.total([&](const comm::ledger_entry& e) { return e.kind == kind && e.axis == axis; });
}

constexpr global_index n = 101, f = 13;

TEST_CASE("row_1d: every row that is not mine, f wide") {
  for (int p : {2, 3, 7, 16})
    on_every_rank(row_1d, {p, 1, 1}, {n, f}, stationary::automatic,
                  [p](const ledger& l, coordinates at, global_index) {
                    CHECK(l.total() == of(l, operation::broadcast, "row"));
                    CHECK(l.total() == traffic{(n - piece(n, p, at.row)) * f, p - 1});
                  });
}

TEST_CASE("replicated_1_5d: 1/c of the rows, and an all-reduce of my block over the c copies") {
  for (mesh_shape m : {mesh_shape{4, 1, 2}, mesh_shape{3, 1, 3}, mesh_shape{2, 1, 5}})
    on_every_rank(
        replicated_1_5d, m, {n, f}, stationary::automatic,
        [m](const ledger& l, coordinates at, global_index) {
          global_index rows = 0;
          for (int r = 0; r < m.row; ++r)
            if (r != at.row) rows += piece(piece(n, m.row, r), m.depth, at.depth);
          CHECK(of(l, operation::broadcast, "row") == traffic{rows * f, m.row - 1});
          const global_index block = piece(n, m.row, at.row) * f, share = piece(block, m.depth, at.depth);
          CHECK(of(l, operation::all_reduce, "depth") ==
                traffic{(m.depth - 2) * share + block, 2 * (m.depth - 1)});
          CHECK(l.total() == of(l, operation::broadcast, "row") + of(l, operation::all_reduce, "depth"));
        });
}

TEST_CASE("grid_2d, sparse moves: the row of A's blocks, and the column of X's") {
  for (mesh_shape m : {mesh_shape{2, 2, 1}, mesh_shape{4, 3, 1}, mesh_shape{2, 5, 1}, mesh_shape{1, 4, 1}})
    on_every_rank(
        grid_2d, m, {n, f}, stationary::c, [m](const ledger& l, coordinates at, global_index nonzeros) {
          const global_index height = piece(n, m.row, at.row), width = piece(f, m.col, at.col);
          CHECK(of(l, operation::broadcast, "row") ==
                traffic{(n - height) * width, m.row > 1 ? (m.row - 1) * m.col : 0});
          const traffic a = of(l, operation::broadcast, "col");
          CHECK(a.messages == 2 * (m.col - 1));
          const auto all = sparse_entries({n, n}, 3);
          const interval rows = blocking::even(n, m, nesting::rows).block(axis::row, at);
          const auto in_my_rows =
              std::count_if(all.begin(), all.end(), [&](const auto& e) { return rows.contains(e.row); });
          const global_index offsets = (m.row * (height + 1) + 3) / 4 * 4;  // columns begin at 16 bytes
          CHECK(a.words == 2 * (in_my_rows - nonzeros) + (m.col - 1) * offsets);
          CHECK(l.total() == a + of(l, operation::broadcast, "row"));
        });
}

TEST_CASE("grid_2d, sparse stays: no word of A; X gathered, Y reduce-scattered") {
  for (mesh_shape m : {mesh_shape{2, 2, 1}, mesh_shape{4, 3, 1}, mesh_shape{2, 5, 1}, mesh_shape{1, 4, 1}})
    on_every_rank(grid_2d, m, {n, f}, stationary::a, [m](const ledger& l, coordinates at, global_index) {
      const global_index height = piece(n, m.row, at.row), width = piece(f, m.col, at.col);
      global_index others = 0;
      for (int r = 0; r < m.row; ++r)
        if (r != at.row) others += piece(piece(n, m.row, r), m.col, at.col);
      CHECK(of(l, operation::broadcast, "col") == traffic{});
      CHECK(of(l, operation::all_to_all, "col") ==
            traffic{piece(height, m.col, at.col) * (f - width), m.col - 1});
      CHECK(of(l, operation::broadcast, "row") == traffic{others * f, m.row - 1});
      CHECK(of(l, operation::reduce_scatter, "col") == traffic{(m.col - 1) * height * width, m.col - 1});
    });
}

TEST_CASE("split_3d: a grid a depth, and a reduce-scatter over depth") {
  for (mesh_shape m : {mesh_shape{2, 2, 2}, mesh_shape{3, 2, 2}, mesh_shape{2, 3, 3}})
    on_every_rank(split_3d, m, {n, f}, stationary::c, [m](const ledger& l, coordinates at, global_index) {
      const global_index width = piece(f, m.col, at.col);
      global_index others = 0;
      for (int r = 0; r < m.row; ++r)
        if (r != at.row) others += piece(piece(n, m.row, r), m.depth, at.depth);
      CHECK(of(l, operation::broadcast, "row") == traffic{others * width, (m.row - 1) * m.col});
      const global_index mine = piece(piece(n, m.row, at.row), m.depth, at.depth) * width;
      CHECK(of(l, operation::reduce_scatter, "depth") == traffic{(m.depth - 1) * mine, m.depth - 1});
      CHECK(of(l, operation::broadcast, "col").messages == 2 * (m.col - 1));
    });
}

/// The rows that the rank at `at` has of n, if its row coordinate were r.
global_index whole_rows_of(mesh_shape m, coordinates at, int r) {
  return piece(piece(piece(n, m.row, r), m.depth, at.depth), m.col, at.col);
}
constexpr std::pair<policy, mesh_shape> in_whole_rows[] = {
    {replicated_1_5d, {3, 1, 4}}, {replicated_1_5d, {1, 1, 5}}, {grid_2d, {3, 4, 1}},
    {grid_2d, {1, 3, 1}},         {split_3d, {2, 2, 3}},        {split_3d, {1, 2, 2}}};

TEST_CASE(
    "whole rows of X stay where they are: 1/q of them along row, and a reduce-scatter over the q ranks") {
  for (const auto& [p, m] : in_whole_rows)
    on_every_rank(p, vertex_rows, m, {n, f}, {stationary::a, row_exchange::full},
                  [&](const ledger& l, coordinates at, global_index) {
                    const int q = m.col * m.depth;
                    global_index others = 0;
                    for (int r = 0; r < m.row; ++r)
                      if (r != at.row) others += whole_rows_of(m, at, r);
                    const traffic rows{others * f, m.row - 1};
                    CHECK(of(l, operation::broadcast, "row") == rows);
                    CHECK(l.total() == rows + traffic{(q - 1) * whole_rows_of(m, at, at.row) * f, q - 1});
                  });
}

TEST_CASE("sums in s parts: the words of one, and s messages from each rank while rows last") {
  for (const auto& [p, m] : in_whole_rows)
    for (const int parts : {2, 7, 30})
      on_every_rank(
          p, vertex_rows, m, {n, f}, {.stationary = stationary::a, .slices = parts},
          [&](const ledger& l, coordinates at, global_index) {
            const int q = m.col * m.depth;
            const global_index mine = whole_rows_of(m, at, at.row);
            const traffic sums =
                l.total([](const comm::ledger_entry& e) { return e.kind == operation::reduce_scatter; });
            CHECK(sums == traffic{(q - 1) * mine * f, (q - 1) * std::min<global_index>(parts, mine)});
          });
}

TEST_CASE("feature_column: nothing; feature_row: every row that is not mine, f/pc wide") {
  on_every_rank(feature_column, {1, 6, 1}, {n, f}, stationary::automatic,
                [](const ledger& l, coordinates, global_index) { CHECK(l.entries().empty()); });
  on_every_rank(feature_row, {3, 4, 1}, {n, f}, stationary::automatic,
                [](const ledger& l, coordinates at, global_index) {
                  CHECK(l.total() == traffic{(n - piece(n, 3, at.row)) * piece(f, 4, at.col), 2});
                });
}

TEST_CASE("only the rows that A's columns name: f times the number of remote columns with an entry") {
  const auto entries = sparse_entries({n, n}, 20);
  for (int p : {2, 5, 8})
    with_mesh({p, 1, 1}, [&](const host_mesh& m) {
      const auto mine = share(entries, m.rank(), p);
      const auto a = distribute(m, row_1d.sparse, {n, n}, mine);
      const auto x = generate<row_1d.dense, double>(m, {n, f}, field(0));
      dense<double, row_1d.dense, host> y(m, a.row_blocking(), x.col_blocking());
      spmm_plan plan(a, x, {stationary::automatic, row_exchange::sparsity_aware});
      m.ledger().clear();
      plan(x, y);
      std::vector<char> named(n, 0);
      for (const auto& e : entries)
        if (y.row_range().contains(e.row) && !y.row_range().contains(e.col))
          named[static_cast<std::size_t>(e.col)] = 1;
      CHECK(m.ledger().total().words == f * std::count(named.begin(), named.end(), 1));
      CHECK(m.ledger().total() == of(m.ledger(), operation::all_to_all, "row"));
    });
}

TEST_CASE("a block-diagonal A moves nothing when only needed rows travel, and automatic finds that") {
  std::vector<triplet<double>> diagonal;
  for (global_index i = 0; i < n; ++i) diagonal.push_back({i, i, 2.0});
  with_mesh({5, 1, 1}, [&](const host_mesh& m) {
    const auto mine = share(diagonal, m.rank(), 5);
    const auto a = distribute(m, row_1d.sparse, {n, n}, mine);
    const blocking features = blocking::even(f, m.shape(), nesting::cols);
    const spmm_plan plan(a, row_1d.dense, features);
    CHECK(plan.options().rows == row_exchange::sparsity_aware);
    CHECK(plan.predicted() == traffic{});
  });
}

TEST_CASE("docs/policies: the words of the busiest rank where all blocks are of equal size") {
  constexpr global_index even = 48, width = 24, nonzeros = even * even;
  std::vector<triplet<double>> entries;
  for (global_index i = 0; i < even * even; ++i) entries.push_back({i / even, i % even, 1.0});
  const auto busiest_in = [&](layout l, const policy& p, mesh_shape shape, stationary keep) {
    global_index words[] = {0};
    with_mesh(shape, [&](const host_mesh& m) {
      const auto a = distribute(m, p, {even, even}, share(entries, m));
      const blocking features = blocking::even(width, shape, nesting::cols);
      global_index mine[] = {spmm_plan(a, l, features, {keep, row_exchange::full}).predicted().words};
      m.world().all_reduce(mine, reduction::max);
      if (m.rank() == 0) words[0] = mine[0];
    });
    return words[0];
  };
  const auto busiest = [&](const policy& p, mesh_shape shape, stationary keep) {
    return busiest_in(p.dense, p, shape, keep);
  };
  for (const auto& p : {grid_2d, split_3d})
    for (mesh_shape m :
         {mesh_shape{3, 2, 1}, mesh_shape{2, 4, 1}, mesh_shape{2, 2, 2}, mesh_shape{2, 3, 4}}) {
      if (p.name == grid_2d.name && m.depth > 1) continue;
      const global_index rows = even / m.row, cols = width / m.col, mine = even / m.size();
      const global_index along_row = (m.row - 1) * (rows / m.depth) * cols,
                         along_depth = (m.depth - 1) * mine * width;
      const global_index block = nonzeros / m.size(), offsets = (even + m.row + 3) / 4 * 4;
      CHECK(busiest(p, m, stationary::c) == (m.col - 1) * (2 * block + offsets) + along_row + along_depth);
      CHECK(busiest(p, m, stationary::a) ==
            mine * (width - cols) + along_row + (m.col - 1) * rows * cols + along_depth);
      const global_index q = m.col * m.depth;
      CHECK(busiest_in(vertex_rows, p, m, stationary::a) ==
            even * width / q - mine * width + (q - 1) * mine * width);
    }
  for (const int c : {2, 4}) {
    const mesh_shape m{12 / c, 1, c};
    CHECK(busiest(replicated_1_5d, m, stationary::automatic) ==
          even * width / c - even * width / 12 + 2 * (c - 1) * even * width / 12);
    CHECK(busiest_in(vertex_rows, replicated_1_5d, m, stationary::automatic) ==
          even * width / c - even * width / 12 + (c - 1) * even * width / 12);
  }
}

/// Bytes that this rank receives in y = A x, and of those the ones that do not travel while a product is
/// enqueued that does not need them: the clock of the ledger counts products.
struct flights {
  global_index received = 0, alone = 0;
};

flights flights_of(const mesh<host>& m, const int& products, const policy& named, row_exchange rows,
                   matrix_shape shape, global_index width, const std::vector<triplet<double>>& entries) {
  const auto a = distribute(m, named, shape, share(entries, m));
  const auto x = generate<double>(m, vertex_rows, {shape.cols, width}, field(0));
  auto y = generate<double>(m, vertex_rows, {shape.rows, width}, field(1));
  spmm_plan plan(a, x, {.stationary = stationary::a, .rows = rows});
  m.ledger().use_clock([&] { return products; });
  m.ledger().keep_events(1000);
  plan(x, y);
  flights f;
  for (const comm::event& e : m.ledger().events()) {
    f.received += e.bytes;
    if (e.wait == e.begin) f.alone += e.bytes;
  }
  CHECK(f.received == 8 * plan.predicted().words);
  auto at_once = generate<double>(m, vertex_rows, {shape.rows, width}, field(2));
  spmm_plan(a, x, {.stationary = stationary::a, .rows = rows, .slices = 1})(x, at_once);
  CHECK(std::ranges::equal(y.values(), at_once.values()));
  return f;
}

TEST_CASE("what travels beside products on 8 ranks: needed rows, and of sums and results all but a part") {
  if (sanitized) return;
  constexpr global_index n = 2048, f = 256, block = n * f / 8 * 8;  // bytes of a rank's rows
  std::vector<triplet<double>> entries;
  for (global_index v = 0; v < n; ++v)
    for (global_index k = 0; k < 8; ++k)  // half of the rows of every block
      entries.push_back({v, (v / 256 + k) % 8 * 256 + v % 128, 1.0 + static_cast<double>(v)});
  for (const policy& named : {row_1d, replicated_1_5d, grid_2d, split_3d, feature_column})
    for (const row_exchange rows : {row_exchange::sparsity_aware, row_exchange::full})
      on_threads(8, [&](const communicator& world) {
        int products = 0;
        const auto q = memory::observed(device_queue<host>(),
                                        [&](const auto& call, base::function_reference<void()> run) {
                                          products += call.kernel == "product" && call.entries > 0 ? 1 : 0;
                                          run();
                                        });
        const mesh<host> m(world, default_mesh(named, 8), q);
        const flights of = flights_of(m, products, named, rows, {n, n}, f, entries);
        constexpr global_index parts = 4;  // of sums and results
        const bool columns = named.name == feature_column.name;
        const global_index others = columns ? 0 : m.shape().col * m.shape().depth - 1;
        // What X needs on its way to columns comes before the product.
        const global_index to_columns = columns ? block * 7 / 8 : 0;
        // Of whole blocks, that behind the own one: two have room, and the own one is not multiplied again.
        const bool waits = rows == row_exchange::full && m.at().row > 0 && m.at().row + 1 < m.shape().row;
        CHECK(of.alone == (others * block + to_columns) / parts + to_columns + (waits ? block : 0));
      });
}

}  // namespace test_ledger
