/// Redistribution is a relation of two layouts: axes newly used slice, axes no longer used gather, axes that
/// change sides exchange. Which it is, and along which axes, is known when the program is compiled.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include <partita/partita.hpp>

using namespace partita;

using rows = layout<axes<axis::row>, axes<>>;                             // copies along col and depth
using grid = layout<axes<axis::row>, axes<axis::col>>;                    // copies along depth
using cube = layout<axes<axis::row, axis::depth>, axes<axis::col>>;       // no copies
using columns = layout<axes<>, axes<axis::col, axis::depth, axis::row>>;  // no copies, whole columns

static_assert(route_between(rows::value, grid::value).kind == movement::slice);
static_assert(route_between(grid::value, rows::value) == route{movement::all_gather, axis::col});
static_assert(route_between(cube::value, vertex_rows::value) == route{movement::all_to_all, axis::col});

constexpr mesh_shape shape{.row = 3, .col = 2, .depth = 2};
constexpr extent size{.rows = 100, .cols = 30};

double entry(global_index i, global_index j) { return static_cast<double>(100 * i + j); }

/// Moves a matrix, prints what travelled, and says whether it arrived as predicted.
template <class From, class To>
bool arrives(const char* names) {
  struct account {
    global_index received = 0;
    bool right = false;
  };
  std::array<account, shape.size()> accounts;  // one place for each rank
  threads::run(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto x = generate<From, double>(m, size, entry);  // (n, f) in From
    m.ledger().clear();
    const auto y = redistribute<To>(x);  // (n, f) in To
    const volume received = m.ledger().total();

    const redistribution<double, host> plan(m, x.row_blocking(), x.col_blocking(), From::value, To::value);
    const auto expected = generate<To, double>(m, size, entry);  // (n, f) in To
    const bool right = std::ranges::equal(y.values(), expected.values()) && received == plan.predicted();
    accounts[static_cast<std::size_t>(m.rank())] = {received.elements, right};
  });

  constexpr route way = route_between(From::value, To::value);
  constexpr const char* kinds[] = {"slice", "all-gather", "all-to-all"};
  global_index total = 0;
  for (const account& a : accounts) total += a.received;
  std::printf("%-22s %-10s along %-13s %6d words\n", names, kinds[static_cast<int>(way.kind)],
              name_of(way.group).c_str(), int(total));
  return std::ranges::all_of(accounts, &account::right);
}

int main() {
  std::printf("A matrix of %s on a mesh of %s:\n", to_string(size).c_str(), to_string(shape).c_str());
  bool right = arrives<rows, grid>("rows to grid");
  right = arrives<grid, rows>("grid to rows") && right;
  right = arrives<grid, cube>("grid to cube") && right;
  right = arrives<cube, grid>("cube to grid") && right;
  right = arrives<cube, vertex_rows>("cube to vertex rows") && right;
  right = arrives<vertex_rows, columns>("vertex rows to columns") && right;
  right = arrives<columns, replicated>("columns to replicated") && right;
  std::printf("every entry %s\n",
              right ? "arrived, with exactly the words predicted" : "did NOT arrive as predicted");
  return right ? 0 : 1;
}
