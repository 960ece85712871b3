// SPDX-License-Identifier: Apache-2.0
/// A redistribution follows from two layouts: axes that become used slice, axes that become unused
/// all-gather, and axes that change sides exchange. Layouts are values, so this can be queried at compile
/// time or at run time.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include <partita/partita.hpp>

using namespace partita;

constexpr layout rows{axis::row, {}};                       // copies along col and depth
constexpr layout grid{axis::row, axis::col};                // copies along depth
constexpr layout cube{axis::row | axis::depth, axis::col};  // no copies
constexpr layout columns{{}, partition::every_axis};        // no copies, whole columns

static_assert(partition::route_between(rows, grid).kind == partition::movement::slice);
static_assert(partition::route_between(grid, rows) ==
              partition::route{partition::movement::all_gather, axis::col});
static_assert(partition::route_between(cube, vertex_rows) ==
              partition::route{partition::movement::all_to_all, axis::col});

constexpr mesh_shape shape{.row = 3, .col = 2, .depth = 2};
constexpr matrix_shape size{.rows = 100, .cols = 30};

double entry(global_index i, global_index j) { return static_cast<double>(100 * i + j); }

/// Redistributes a matrix, prints the traffic, and returns whether result and traffic are as predicted.
bool arrives(const char* names, layout from, layout to) {
  struct account {
    global_index received = 0;
    bool right = false;
  };
  std::array<account, shape.size()> accounts;  // one place for each rank
  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto x = generate<double>(m, from, size, entry);  // (n, f)
    m.ledger().clear();
    const auto y = redistribute(x, to);  // (n, f)
    const traffic received = m.ledger().total();

    const redistribution<double, host> plan(m, x.row_blocking(), x.col_blocking(), from, to);
    const auto expected = generate<double>(m, to, size, entry);  // (n, f)
    const bool right = std::ranges::equal(y.values(), expected.values()) && received == plan.predicted();
    accounts[static_cast<std::size_t>(m.rank())] = {received.words, right};
  });

  const partition::route way = partition::route_between(from, to);
  constexpr const char* kinds[] = {"slice", "all-gather", "all-to-all"};
  global_index total = 0;
  for (const account& a : accounts) total += a.received;
  std::printf("%-22s %-10s along %-13s %6d words\n", names, kinds[static_cast<int>(way.kind)],
              partition::name_of(way.group).c_str(), int(total));
  return std::ranges::all_of(accounts, &account::right);
}

int main() {
  std::printf("A matrix of %s on a mesh of %s:\n", to_string(size).c_str(), to_string(shape).c_str());
  bool right = arrives("rows to grid", rows, grid);
  right = arrives("grid to rows", grid, rows) && right;
  right = arrives("grid to cube", grid, cube) && right;
  right = arrives("cube to grid", cube, grid) && right;
  right = arrives("cube to vertex rows", cube, vertex_rows) && right;
  right = arrives("vertex rows to columns", vertex_rows, columns) && right;
  right = arrives("columns to replicated", columns, replicated) && right;
  std::printf("every entry %s\n",
              right ? "arrived, with exactly the words predicted" : "did NOT arrive as predicted");
  return right ? 0 : 1;
}
