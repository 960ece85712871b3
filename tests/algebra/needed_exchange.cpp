// SPDX-License-Identifier: Apache-2.0
// Rows exchanged in chunks and slices: the words of one exchange, and of chunks its bits; some in flight
// while others multiply.
#include "partita/algebra/needed_exchange.hpp"

#include <set>
#include <tuple>

#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/forwarding_transport.hpp"
#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_needed_exchange {

using namespace test_support;

using problem = spmm_problem;

auto one_way(const host_mesh& m, const policy& named, const problem& p) {
  return distribute(m, named, growing(p.shape.rows, m.shape()), growing(p.shape.cols, m.shape()),
                    share(p.entries, m), symmetry::one_way);
}

spmm_options in_chunks(int chunks, stationary kept = stationary::automatic) {
  return {kept, row_exchange::sparsity_aware, chunks};
}

spmm_options in_slices(int slices, stationary kept = stationary::automatic) {
  spmm_options o{kept, row_exchange::sparsity_aware};
  o.slices = slices;
  return o;
}

/// A product in so many chunks against the one without: bits, words and what is allocated.
void check_chunks(const auto& a, const problem& p, bool transpose, stationary kept,
                  std::span<const int> counts) {
  const auto& m = a.mesh();
  const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
  for (const layout l : {a.operand_layout().value_or(vertex_rows), vertex_rows}) {
    const auto x = generate<double>(m, l, a.col_blocking(), features, field(0));
    const auto run = [&](spmm_options o) {
      auto y = generate<double>(m, l, a.row_blocking(), features, field(1));
      spmm_plan plan(a, x, o);
      plan(x, y);
      const std::vector<double> once = collect(y);
      plan(2, x, -0.5, y);
      run_again(m, plan, x, y);
      CHECK(collect(y) == once);
      plan(2, x, -0.5, y);
      return std::tuple(once, collect(y), plan.predicted().words);
    };
    const auto expected = run(in_chunks(1, kept));
    CHECK(largest_difference(std::get<0>(expected), product(p.entries, p.shape, p.width, transpose)) < 1e-12);
    for (const int chunks : counts) CHECK(run(in_chunks(chunks, kept)) == expected);
  }
}

/// A product in so many slices against the one without: words, what is allocated, values and, where sums go,
/// bits.
void check_slices(const auto& a, const problem& p, bool transpose, stationary kept,
                  std::span<const int> counts) {
  const auto& m = a.mesh();
  const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
  for (const layout l : {a.operand_layout().value_or(vertex_rows), vertex_rows}) {
    const auto x = generate<double>(m, l, a.col_blocking(), features, field(0));
    const auto run = [&](int slices) {
      auto y = generate<double>(m, l, a.row_blocking(), features, field(1));
      spmm_plan plan(a, x, in_slices(slices, kept));
      plan(x, y);
      run_again(m, plan, x, y);
      return std::pair(collect(y), plan.predicted().words);
    };
    const auto [expected, words] = run(1);
    for (const int slices : counts) {
      const auto [found, moved] = run(slices);
      CHECK(moved == words);
      if (a.is_stored())
        CHECK(largest_difference(found, product(p.entries, p.shape, p.width, transpose)) < 1e-12);
      else
        CHECK(found == expected);
    }
  }
}

/// The all-to-alls of a rank.
struct exchanges {
  int started = 0, finished = 0, most_in_flight = 0;
};
/// Counts them.
class watching_transport final : public forwarding_transport {
 public:
  watching_transport(std::shared_ptr<comm::transport> ranks, exchanges& seen)
      : forwarding_transport(std::move(ranks)), seen_(&seen) {}

  std::uint64_t start(const comm::collective& op) override {
    seen_->started += op.kind == operation::all_to_all;
    seen_->most_in_flight = std::max(seen_->most_in_flight, seen_->started - seen_->finished);
    return inner_->start(op);
  }
  void finish(const comm::collective& op, std::uint64_t token) override {
    inner_->finish(op, token);
    seen_->finished += op.kind == operation::all_to_all;
  }
  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<watching_transport>(inner_->split(color, key, where), *seen_);
  }

 private:
  exchanges* seen_;
};

TEST_CASE("any number of chunks: the bits and words of one exchange, on every policy and mesh") {
  constexpr int few[] = {2, 3, 50};
  for (const problem& p : {problem{{37, 29}, 5}, problem{{9, 23}, 4}})
    on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9, 12, 16, 27},
                    [&](const host_mesh& m, const policy& named) {
                      const auto a = one_way(m, named, p);
                      check_chunks(a, p, false, stationary::automatic, few);
                      check_chunks(transposed(a), p, true, stationary::automatic, few);
                    });
}

TEST_CASE("any number of slices: the words of one exchange, on every policy and mesh, and the bits of sums") {
  constexpr int few[] = {2, 3, 50};
  for (const problem& p : {problem{{37, 29}, 5}, problem{{9, 23}, 4}})
    on_usual_meshes(std::array{1, 2, 3, 4, 6, 8, 9, 12, 16, 27},
                    [&](const host_mesh& m, const policy& named) {
                      const auto a = one_way(m, named, p);
                      for (const stationary kept : {stationary::automatic, stationary::a}) {
                        check_slices(a, p, false, kept, few);
                        check_slices(transposed(a), p, true, kept, few);
                      }
                    });
}

TEST_CASE("blocks that move along col, tiles in parts of few entries, a width below the number of ranks") {
  constexpr int few[] = {2, 5};
  const problem p{{29, 37}, 2};
  for_each_mesh(std::array{4, 6, 12}, [&](const policy& named, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const host_mesh m(world, shape, device_queue<host>(), 25);
      const auto a = one_way(m, named, p);
      for (const stationary kept : {stationary::c, stationary::a}) {
        check_chunks(a, p, false, kept, few);
        check_chunks(transposed(a), p, true, kept, few);
      }
    });
  });
}

TEST_CASE("row_1d: a row travels with the first chunk that needs it, f wide, and never again") {
  const problem p{{101, 101}, 13, sparse_entries({101, 101}, 20)};
  for (const int ranks : {2, 5, 8})
    for (const int chunks : {1, 2, 4, 9})
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
        const auto x = generate<double>(m, row_1d.dense, {101, 13}, field(0));
        auto y = generate<double>(m, row_1d.dense, {101, 13}, field(1));
        spmm_plan plan(a, x, in_chunks(chunks));
        m.ledger().clear();
        plan(x, y);
        const interval mine = y.row_range();
        std::vector<std::set<global_index>> fresh(static_cast<std::size_t>(chunks));
        std::set<global_index> all;
        global_index messages = 0;
        for (int j = 0; j < chunks; ++j) {
          const interval rows = base::part_of(mine, j, chunks);
          std::set<std::size_t> senders;
          for (const auto& e : p.entries)
            if (rows.contains(e.row) && !mine.contains(e.col) && all.insert(e.col).second)
              senders.insert(a.col_blocking().owner(axis::row, e.col));
          messages += static_cast<global_index>(senders.size());
        }
        CHECK(m.ledger().total() == traffic{static_cast<global_index>(all.size()) * 13, messages});
        CHECK(m.ledger().total() == plan.predicted());
      });
}

TEST_CASE("row_1d: slice k has the rows of the next ranks around, evenly many of each") {
  const problem p{{101, 101}, 13, sparse_entries({101, 101}, 20)};
  for (const int ranks : {2, 5, 8})
    for (const int slices : {1, 2, 4, 9})
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
        const auto x = generate<double>(m, row_1d.dense, {101, 13}, field(0));
        auto y = generate<double>(m, row_1d.dense, {101, 13}, field(1));
        spmm_plan plan(a, x, in_slices(slices));
        CHECK(plan.options().slices == slices);
        m.ledger().clear();
        plan(x, y);
        std::set<global_index> needed;
        for (const auto& e : p.entries)
          if (y.row_range().contains(e.row) && !y.row_range().contains(e.col)) needed.insert(e.col);
        global_index messages = 0;
        for (int d = 1; d < ranks; ++d) {
          const interval there =
              a.col_blocking().block(axis::row, {.row = (m.rank() + d) % ranks, .col = 0, .depth = 0});
          const auto n = std::ranges::count_if(needed, [&](global_index j) { return there.contains(j); });
          std::set<global_index> of_rank;
          for (global_index i = 0; i < n; ++i) of_rank.insert(slices * ((d - 1) * n + i) / ((ranks - 1) * n));
          messages += std::ssize(of_rank);
        }
        CHECK(m.ledger().total() == traffic{std::ssize(needed) * 13, messages});
        CHECK(m.ledger().total() == plan.predicted());
        if ((ranks - 1) % slices == 0) CHECK(messages <= ranks - 1);
      });
}

TEST_CASE("slices are as many as pay: for the rows that are needed, and the entries of a row") {
  const auto slices = [](int ranks, std::size_t needed, std::size_t entries, int asked = 0,
                         std::size_t own = 0) {
    int found = 0;
    on_threads(ranks, [&](const communicator& world) {
      const host_mesh m(world, {ranks, 1, 1});
      const auto mine =
          algebra::detail::slices_in_effect(m, asked, m.rank() == 0 ? needed : 0, own, entries, 100);
      if (m.rank() + 1 == ranks) found = static_cast<int>(mine);
    });
    return found;
  };
  CHECK(slices(3, 1023, 1'000'000) == 1);
  CHECK(slices(3, 3 * 1024, 1'000'000) == 3);
  CHECK(slices(2, 100 * 1024, 1'000'000) == 8);
  CHECK(slices(2, 100 * 1024, 1'000) == 5);
  CHECK(slices(2, 0, 0) == 1);
  CHECK(slices(2, 100 * 1024, 1'000, 0, 499) == 5);
  CHECK(slices(2, 100 * 1024, 1'000, 0, 500) == 1);  // all of it travels beside the own tile
  CHECK(slices(2, 0, 0, 7) == 7);
}

TEST_CASE("the next two chunks, or slices, are in flight while one multiplies") {
  const problem p{{64, 64}, 4};
  constexpr int steps = 4;
  for (const bool sliced : {false, true})
    on_threads(3, [&](const communicator& world) {
      exchanges seen;
      const host_mesh m(world.with_transport(std::make_shared<watching_transport>(world.transport(), seen)),
                        {3, 1, 1});
      const spmm_options o = sliced ? in_slices(steps) : in_chunks(steps);
      const auto a = distribute(m, row_1d, p.shape, share(p.entries, m.rank(), 3), symmetry::one_way);
      const auto x = generate<double>(m, row_1d.dense, {64, 4}, field(0));
      algebra::detail::product_stages<double, host> stages(
          {m, a.row_blocking(), a.col_blocking(), x.col_blocking(), a.layout(), row_1d.dense}, a.analysed(),
          o);
      seen = {};
      std::vector<std::array<int, 3>> calls;
      stages.for_stages(x.local(), {}, 0, [&](std::size_t tile, const auto&, auto, double, auto) {
        calls.push_back({static_cast<int>(tile), seen.started, seen.finished});
      });
      REQUIRE(calls.size() == 1 + steps);
      CHECK(calls[0] == std::array{0, sliced ? 3 : 2, 0});  // as many as have places of their own
      for (int j = 0; j < steps; ++j)
        CHECK(calls[1 + static_cast<std::size_t>(j)] ==
              std::array{sliced ? 1 + j : 1, std::min(j + 3, steps), j + 1});
      auto y = generate<double>(m, row_1d.dense, {64, 4}, field(1));
      spmm_plan back(transposed(a), x, o);
      seen = {};
      back(x, y);
      CHECK(seen.started == steps);
      CHECK(seen.most_in_flight == 2);
    });
}

TEST_CASE("over far memory the chunks are chosen, and the products are those of near memory") {
  const problem p{{150, 130}, 6};
  const auto store = new_far_store();
  for (const policy& named : {row_1d, replicated_1_5d, grid_2d, split_3d})
    on_mesh(default_mesh(named, 4), [&](const host_mesh& near) {
      const host_mesh m(near.world(), near.shape());
      use_far(m.queue(), {.store = store, .window = 8192, .from = 64});
      const auto product_of = [&](const host_mesh& on, bool transpose, const spmm_options& o) {
        const auto a = one_way(on, named, p);
        const auto b = transpose ? transposed(a) : a;
        const auto x = generate<double>(on, named.dense, b.col_blocking(),
                                        blocking::even(p.width, on.shape(), nesting::cols), field(0));
        dense<double, dynamic_layout, host> y(on, named.dense, b.row_blocking(), x.col_blocking());
        spmm_plan plan(b, x, o);
        run_as_predicted(on, plan, x, y);
        return std::tuple(collect(y), plan.options().chunks, plan.predicted().words);
      };
      for (const bool transpose : {false, true}) {
        const auto [expected, one, words] = product_of(near, transpose, in_chunks(0));
        CHECK(one == 1);
        for (const int chunks : {0, 3}) {
          const auto [found, used, moved] = product_of(m, transpose, in_chunks(chunks));
          CHECK(largest_difference(found, expected) < 1e-12);
          CHECK(moved == words);
          if (chunks == 3 && m.shape().row > 1) CHECK(used == 3);
          if (chunks == 0 && m.shape().row > 1) CHECK(used >= 2);
          if (m.shape().row == 1) CHECK(used == 1);
        }
        const auto covered = std::get<0>(product_of(m, transpose, {.rows = row_exchange::cover}));
        CHECK(largest_difference(covered, expected) < 1e-12);
      }
    });
}

TEST_CASE("sums of a reproducible mesh in chunks") {
  const problem p{{45, 31}, 3};
  for (const policy& named : {row_1d, grid_2d})
    on_threads(4, [&](const communicator& world) {
      const host_mesh m(world, default_mesh(named, 4), summing(summation::reproducible), 40);
      constexpr int few[] = {2, 7};
      const auto a = one_way(m, named, p);
      check_chunks(a, p, false, stationary::automatic, few);
      check_chunks(transposed(a), p, true, stationary::automatic, few);
    });
}

TEST_CASE("chunks and slices imply that only needed rows travel; where whole blocks do, there are none") {
  const problem p{{30, 30}, 3};
  on_mesh({3, 1, 1}, [&](const host_mesh& m) {
    const auto a = one_way(m, row_1d, p);
    const blocking features = blocking::even(3, m.shape(), nesting::cols);
    const auto options = [&](const auto& of, spmm_options asked) {
      return spmm_plan(of, row_1d.dense, features, asked).options();
    };
    for (const bool transpose : {false, true}) {
      const auto b = transpose ? transposed(a) : a;
      CHECK(options(b, {.chunks = 4}).rows == row_exchange::sparsity_aware);
      CHECK(options(b, {.chunks = 4}).chunks == 4);
      CHECK(options(b, {.rows = row_exchange::full, .chunks = 4}).chunks == 1);
      CHECK(options(b, {}).chunks == 1);
      expect_error<error>("an exchange of needed rows in -1 chunks",
                          [&] { (void)options(b, {.rows = row_exchange::sparsity_aware, .chunks = -1}); });
      spmm_options in_four{};
      in_four.slices = 4;
      CHECK(options(b, in_four).rows == row_exchange::sparsity_aware);
      CHECK(options(b, in_four).slices == 4);
      in_four.chunks = 3;
      CHECK(options(b, in_four).slices == 1);
      CHECK(options(b, {}).slices == 1);
      expect_error<error>("an exchange of needed rows in -1 slices",
                          [&] { (void)options(b, in_slices(-1)); });
    }
  });
}

/// Products whose rows travel in fewer bytes, against the bound of what is rounded, and bytes that are
/// received.
TEST_CASE("rows in 16, 8 and 4 bits: errors and bytes") {
  const problem p{{41, 41}, 10};
  for (const policy& named : {row_1d, replicated_1_5d, grid_2d, split_3d, feature_row})
    for (const int ranks : {4, 6})
      with_mesh(default_mesh(named, ranks), [&](const host_mesh& m) {
        const auto a = one_way(m, named, p);
        const layout l = named.dense;
        const blocking features = blocking::even(p.width, m.shape(), nesting::cols);
        const auto x = generate<double>(m, l, a.col_blocking(), features, field(0));
        for (const bool transpose : {false, true}) {
          double largest = 0, most = 0;  // of a row of |A|, and of X
          std::vector<double> sums(41, 0);
          for (const auto& e : p.entries)
            largest = std::max(
                largest, sums[static_cast<std::size_t>(transpose ? e.col : e.row)] += std::abs(e.value));
          for (global_index i = 0; i < 41; ++i)
            for (global_index j = 0; j < p.width; ++j) most = std::max(most, std::abs(field(0)(i, j)));
          const std::vector<double> expected = product(p.entries, p.shape, p.width, transpose);
          const auto check = [&](const auto& matrix) {
            const spmm_options exact{stationary::a, row_exchange::sparsity_aware};
            const spmm_plan plain(matrix, x, exact);
            for (const local::row_encoding how :
                 {local::row_encoding::bf16, local::row_encoding::int8, local::row_encoding::int4}) {
              spmm_options o = exact;
              o.encoding = how;
              spmm_plan plan(matrix, x, o);
              auto y = generate<double>(m, l, matrix.row_blocking(), features, field(1));
              plan(x, y);
              run_again(m, plan, x, y);
              // A number is off by a step at most, or by 2^-8 of itself, and so is a sum of Y where sums go.
              const double step =
                  how == local::row_encoding::bf16 ? 0x1p-8 : 2.1 / ((1 << local::bits_of(how)) - 1);
              CHECK(largest_difference(collect(y), expected) <=
                    step * largest * most * (transpose ? ranks : 1));
              CHECK(plan.predicted().messages == plain.predicted().messages);
              global_index coded = 0, elements = 0;  // received along row
              for (const comm::ledger_entry& e : m.ledger().entries())
                if (e.kind == operation::all_to_all && e.axis == "row") coded += e.received.words;
              const global_index width = plan.options().stationary == stationary::a && m.shape().col > 1 &&
                                                 named.sparse.cols.contains(axis::col)
                                             ? p.width
                                             : features.block(l.cols, m.at()).size();
              elements = coded / local::sent_of_row(how, width) * width;
              CHECK(plan.predicted().words - coded == plain.predicted().words - elements);
            }
          };
          transpose ? check(transposed(a)) : check(a);
        }
      });
}

}  // namespace test_needed_exchange
