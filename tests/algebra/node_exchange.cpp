// SPDX-License-Identifier: Apache-2.0
// Rows that cross between nodes once: the sums of one exchange, in closed forms of what crosses and what is
// handed on.
#include "partita/algebra/node_exchange.hpp"

#include <map>
#include <set>

#include "bench/support/graphs.hpp"
#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_node_exchange {

using namespace test_support;

/// Numbers whose sums are exact in any order.
double whole(global_index i, global_index j) { return static_cast<double>((5 * i + 3 * j) % 13 - 6); }

spmm_problem whole_problem(matrix_shape shape, global_index width, std::uint64_t sparsity = 3) {
  spmm_problem p{shape, width, sparse_entries(shape, sparsity)};
  for (auto& e : p.entries) e.value = whole(e.row, e.col + 1);
  return p;
}

auto distributed(const host_mesh& m, const policy& named, const spmm_problem& p, symmetry kind) {
  return distribute(m, named, growing(p.shape.rows, m.shape()), growing(p.shape.cols, m.shape()),
                    share(p.entries, m), kind);
}

spmm_options on_nodes(int ranks, stationary kept = stationary::automatic,
                      row_exchange rows = row_exchange::sparsity_aware) {
  return {.stationary = kept, .rows = rows, .ranks_of_node = ranks};
}

/// What this rank has received along an axis of this name since the ledger was cleared.
traffic heard_along(const host_mesh& m, std::string_view axis) {
  return m.ledger().total([&](const comm::ledger_entry& e) { return e.axis == axis; });
}

/// 2 A x - y for an x and y of whole(), and A x behind it, by the entries alone.
std::vector<double> serial_products(const spmm_problem& p, bool transpose) {
  const auto rows = static_cast<std::size_t>(transpose ? p.shape.cols : p.shape.rows),
             size = rows * static_cast<std::size_t>(p.width);
  std::vector<double> y(2 * size, 0);
  for (const auto& e : p.entries)
    for (global_index j = 0; j < p.width; ++j)
      y[size + static_cast<std::size_t>((transpose ? e.col : e.row) * p.width + j)] +=
          e.value * whole(transpose ? e.row : e.col, j);
  for (std::size_t k = 0; k < size; ++k) {
    const auto at = static_cast<global_index>(k);
    y[k] = 2 * y[size + k] - whole(at / p.width, at % p.width);
  }
  return y;
}

/// The same of a, of which the last product has received what its plan says.
std::vector<double> products(const auto& a, layout l, global_index width, spmm_options o) {
  const auto& m = a.mesh();
  const blocking features = blocking::even(width, m.shape(), nesting::cols);
  const auto x = generate<double>(m, l, a.col_blocking(), features, whole);
  auto y = generate<double>(m, l, a.row_blocking(), features, whole);
  spmm_plan plan(a, x, o);
  plan(2, x, -1, y);
  std::vector<double> all = collect(y);
  plan(x, y);
  run_again(m, plan, x, y);
  CHECK(heard_along(m, "row between nodes") == plan.predicted_between_nodes());
  const std::vector<double> once = collect(y);
  all.insert(all.end(), once.begin(), once.end());
  return all;
}

/// Nodes of each number of ranks that a mesh may have, against rows that travel at once.
void check_nodes(const auto& a, layout l, const spmm_problem& p, bool transpose, stationary kept) {
  const mesh_shape shape = a.mesh().shape();
  const std::vector<double> expected = products(a, l, p.width, on_nodes(1, kept));
  CHECK(expected == serial_products(p, transpose));
  for (int ranks = 2; ranks < shape.size(); ranks += 1 + ranks / 4)
    CHECK(products(a, l, p.width, on_nodes(ranks, kept)) == expected);
}

TEST_CASE("on every policy and mesh, of any number of nodes: the sums of one exchange, as predicted") {
  const spmm_problem p = whole_problem({37, 29}, 5);
  on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9, 12, 16}, [&](const host_mesh& m, const policy& named) {
    const auto a = distributed(m, named, p, symmetry::general);
    const auto one_way = distributed(m, named, p, symmetry::one_way);
    check_nodes(a, named.dense, p, false, stationary::automatic);
    check_nodes(transposed(a), vertex_rows, p, true, stationary::automatic);
    check_nodes(transposed(one_way), named.dense, p, true, stationary::automatic);
  });
}

TEST_CASE("blocks that move along col, and ranks without rows") {
  const spmm_problem p = whole_problem({9, 23}, 4);
  for_each_mesh(std::array{6, 8, 12}, [&](const policy& named, mesh_shape shape) {
    with_mesh(shape, [&](const host_mesh& m) {
      const auto a = distributed(m, named, p, symmetry::one_way);
      for (const stationary kept : {stationary::c, stationary::a}) {
        check_nodes(a, named.dense, p, false, kept);
        check_nodes(transposed(a), named.dense, p, true, kept);
      }
    });
  });
}

/// The rows of X that each rank needs of others under row_1d, by the edges alone.
struct needed_by_rank {
  std::vector<std::set<global_index>> rows;
  std::function<int(global_index)> owner;

  needed_by_rank(const spmm_problem& p, int ranks)
      : rows(static_cast<std::size_t>(ranks)),
        owner([of = blocking::even(p.shape.rows, {ranks, 1, 1}, nesting::rows)](global_index v) {
          return static_cast<int>(of.owner(axis::row, v));
        }) {
    for (const auto& e : p.entries)
      if (owner(e.row) != owner(e.col)) rows[static_cast<std::size_t>(owner(e.row))].insert(e.col);
  }
};

TEST_CASE("row_1d: a row crosses to a node once, to one of its ranks, which hands it on") {
  constexpr global_index n = 101, f = 7;
  const spmm_problem p = whole_problem({n, n}, f, 20);
  for (const int ranks : {4, 6, 8, 9})
    for (const int of_node : {2, 3}) {
      const needed_by_rank needed(p, ranks);
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
        const auto x = generate<double>(m, row_1d.dense, {n, f}, whole);
        auto y = generate<double>(m, row_1d.dense, {n, f}, whole);
        spmm_plan plan(a, x, on_nodes(of_node));
        m.ledger().clear();
        plan(x, y);
        // Ranks of this node, and the one through which rows of rank r pass.
        const int first = m.rank() / of_node * of_node, size = std::min(of_node, ranks - first);
        const auto relay = [&](int r) { return first + (r - first + ranks * size) % size; };
        std::set<global_index> crossing;
        std::set<int> senders;
        traffic inside;
        for (int j = first; j < first + size; ++j) {
          std::map<int, global_index> handed;
          for (const global_index row : needed.rows[static_cast<std::size_t>(j)]) {
            const int r = needed.owner(row);
            if ((r < first || r >= first + size) && relay(r) == m.rank()) {
              crossing.insert(row);
              senders.insert(r);
            }
            if (j == m.rank() && relay(r) != j) ++handed[relay(r)];
          }
          for (const auto& [from, rows] : handed) inside += {rows * f, 1};
        }
        const traffic across{std::ssize(crossing) * f, std::ssize(senders)};
        CHECK(heard_along(m, "row between nodes") == across);
        CHECK(heard_along(m, "row inside nodes") == inside);
        CHECK(m.ledger().total() == across + inside);
        CHECK(plan.predicted() == across + inside);
        CHECK(plan.predicted_between_nodes() == across);
        CHECK(plan.predicted_words_of_x() == across.words + inside.words);
      });
    }
}

TEST_CASE("R-MAT: what crosses is the union of what ranks of a node need, less than one exchange") {
  spmm_problem p{{256, 256}, 3, {}};
  for (const auto& e : bench::rmat(8, 8).share(0, 1))
    p.entries.push_back({e.row, e.col, whole(e.row, e.col)});
  for (const auto& [ranks, of_node] : {std::pair(8, 4), {8, 2}, {9, 4}, {16, 8}}) {
    const needed_by_rank needed(p, ranks);
    const auto node = [of_node = of_node](int rank) { return rank / of_node; };
    global_index at_once = 0, once_a_node = 0;
    for (int first = 0; first < ranks; first += of_node) {
      std::set<global_index> of_this;
      for (int j = first; j < std::min(ranks, first + of_node); ++j)
        for (const global_index row : needed.rows[static_cast<std::size_t>(j)])
          if (node(needed.owner(row)) != node(first)) {
            of_this.insert(row);
            ++at_once;
          }
      once_a_node += std::ssize(of_this);
    }
    CHECK(once_a_node < at_once);
    on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
      const auto crossing = [&](const auto& a) {
        return m.world().all_reduce(
            spmm_plan(a, row_1d.dense, features, on_nodes(of_node)).predicted_between_nodes().words);
      };
      const auto a = distribute(m, row_1d, p.shape, share(p.entries, m), symmetry::one_way);
      CHECK(crossing(a) == p.width * once_a_node);
      CHECK(crossing(transposed(a)) == p.width * once_a_node);  // sums for the same rows, the other way
      check_nodes(a, row_1d.dense, p, false, stationary::automatic);
    });
  }
}

TEST_CASE("nodes with covers, with rows in fewer bytes, with an X of bfloat16 and with reproducible sums") {
  const spmm_problem p = whole_problem({41, 41}, 6, 5);
  for (const policy& named : {row_1d, grid_2d, replicated_1_5d}) {
    const mesh_shape shape = named.name == row_1d.name ? mesh_shape{6, 1, 1} : mesh_shape{4, 1, 1};
    const mesh_shape cut = named.name == grid_2d.name           ? mesh_shape{4, 2, 1}
                           : named.name == replicated_1_5d.name ? mesh_shape{4, 1, 2}
                                                                : shape;
    const int of_node = 2 * cut.col * cut.depth;
    with_mesh(cut, [&](const host_mesh& m) {
      for (const bool transpose : {false, true}) {
        const auto straight = distributed(m, named, p, symmetry::one_way);
        const auto a = transpose ? transposed(straight) : straight;
        const auto at_once = products(a, named.dense, p.width, on_nodes(1, stationary::a));
        CHECK(products(a, named.dense, p.width, on_nodes(of_node, stationary::a, row_exchange::cover)) ==
              at_once);
        spmm_options coded = on_nodes(of_node, stationary::a);
        coded.encoding = local::row_encoding::bf16;  // small whole numbers are numbers of bfloat16
        CHECK(products(a, named.dense, p.width, coded) == at_once);
      }
    });
    on_threads(cut.size(), [&](const communicator& world) {
      const host_mesh m(world, cut, summing(summation::reproducible));
      const auto a = distributed(m, named, p, symmetry::one_way);
      CHECK(products(a, named.dense, p.width, on_nodes(of_node)) ==
            products(a, named.dense, p.width, on_nodes(1)));
      CHECK(products(transposed(a), named.dense, p.width, on_nodes(of_node)) ==
            products(transposed(a), named.dense, p.width, on_nodes(1)));
    });
    with_mesh(cut, [&](const host_mesh& m) {
      std::vector<triplet<float>> entries;
      for (const auto& e : p.entries) entries.push_back({e.row, e.col, static_cast<float>(e.value)});
      const auto a = distribute(m, named, p.shape, share(entries, m));
      const auto x = generate<base::bfloat16>(
          m, named.dense, a.col_blocking(), blocking::even(p.width, m.shape(), nesting::cols),
          [](global_index i, global_index j) { return base::bfloat16(static_cast<float>(whole(i, j))); });
      CHECK(collect(spmm(a, x, on_nodes(of_node))) == collect(spmm(a, x, on_nodes(1))));
    });
  }
}

TEST_CASE("where no ranks along row share a node, or all do, rows travel at once") {
  const spmm_problem p = whole_problem({30, 30}, 4);
  for (const auto& [shape, of_node] : {std::pair(mesh_shape{4, 2, 1}, 2),
                                       {{4, 2, 1}, 8},
                                       {{4, 2, 1}, 9},
                                       {{4, 1, 1}, 1},
                                       {{4, 1, 1}, 5},
                                       {{1, 4, 1}, 3}})
    with_mesh(shape, [&, of_node = of_node](const host_mesh& m) {
      const auto a = distributed(m, grid_2d, p, symmetry::one_way);
      const blocking features = blocking::even(4, m.shape(), nesting::cols);
      const spmm_plan plan(a, grid_2d.dense, features, {.ranks_of_node = of_node}),
          plain(a, grid_2d.dense, features);
      CHECK(plan.options().ranks_of_node == 1);
      CHECK(plan.options().rows == plain.options().rows);
      CHECK(plan.predicted() == plain.predicted());
      CHECK(plan.predicted_between_nodes() == traffic{});
    });
}

TEST_CASE("nodes imply needed rows; what they are not for names them") {
  const spmm_problem p = whole_problem({30, 30}, 4);
  const auto options = [&](mesh_shape shape, spmm_options asked) {
    spmm_options found;
    with_mesh(shape, [&](const host_mesh& m) {
      const spmm_plan plan(distributed(m, grid_2d, p, symmetry::one_way), grid_2d.dense,
                           blocking::even(4, m.shape(), nesting::cols), asked);
      if (m.rank() == 0) found = plan.options();
    });
    return found;
  };
  const spmm_options automatic = options({4, 2, 1}, {.ranks_of_node = 4});
  CHECK(automatic.rows == row_exchange::sparsity_aware);
  CHECK(automatic.ranks_of_node == 4);
  const auto refused = [&](std::string_view why, mesh_shape shape, spmm_options asked) {
    expect_error<error>(why, [&] { (void)options(shape, asked); });
  };
  refused(
      "handed on inside nodes of 2 ranks are needed rows: whole blocks, row_exchange::full, are broadcast",
      {4, 1, 1}, {.rows = row_exchange::full, .ranks_of_node = 2});
  refused("handed on inside nodes of 2 ranks at once, not in 3 parts", {4, 1, 1},
          {.chunks = 3, .ranks_of_node = 2});
  refused("handed on inside nodes of 0 ranks", {4, 1, 1}, {.ranks_of_node = 0});
  refused("row_exchange::cover on mesh 4x2x1 is not for nodes of 3 ranks, which is not a multiple of the 2",
          {4, 2, 1}, {.rows = row_exchange::cover, .ranks_of_node = 3});
}

}  // namespace test_node_exchange
