// SPDX-License-Identifier: Apache-2.0
// Y = A X and Y = A^T X: right, and moving exactly what the closed forms say, for every policy on every mesh.
#include "partita/algebra/spmm.hpp"

#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"
#include "support/spmm_problems.hpp"

namespace test_spmm {

using namespace test_support;

using problem = spmm_problem;

auto distributed(const mesh<host>& m, layout l, const problem& p, const blocking& rows,
                 const blocking& cols) {
  return distribute(m, l, rows, cols, share(p.entries, m));
}

void check_product(const mesh<host>& m, const policy& named, const problem& p, const blocking& rows,
                   const blocking& cols, bool transpose, spmm_options options) {
  const auto stored = distributed(m, named.sparse, p, rows, cols);
  test_support::check_product(transpose ? transposed(stored) : stored, named.dense, p, transpose, options);
}

void check_even(const policy& named, mesh_shape shape, const problem& p, spmm_options options,
                std::size_t tile_entries = base::max_tile_entries) {
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape, device_queue<host>(), tile_entries);
    const blocking rows = blocking::even(p.shape.rows, shape, nesting::rows);
    const blocking cols = blocking::even(p.shape.cols, shape, nesting::rows);
    for (bool transpose : {false, true}) check_product(m, named, p, rows, cols, transpose, options);
  });
}

/// y = -0.75 A x over NaN, and then y = 2 A x + 0.5 y twice.
template <layout A>
void check_update(const sparse<double, A, host>& a, layout l, const problem& p,
                  const std::vector<double>& once, spmm_options options) {
  const auto& m = a.mesh();
  const auto x = generate<double>(m, l, {p.shape.cols, p.width}, field(0));
  auto y = generate<double>(m, l, {p.shape.rows, p.width}, [](auto, auto) { return NAN; });
  spmm_plan plan(a, x, options);
  plan(-0.75, x, 0, y);
  std::vector<double> expected(once.size());
  for (std::size_t i = 0; i < once.size(); ++i) expected[i] = -0.75 * once[i];
  CHECK(largest_difference(collect(y), expected) < 1e-12);
  for (int run = 0; run < 2; ++run) {
    run_as_predicted(m, plan, 2, x, 0.5, y);
    for (std::size_t i = 0; i < once.size(); ++i) expected[i] = 2 * once[i] + 0.5 * expected[i];
    CHECK(largest_difference(collect(y), expected) < 1e-12);
  }
  spmm(1, a, x, 1, y, options);
  for (std::size_t i = 0; i < once.size(); ++i) expected[i] += once[i];
  CHECK(largest_difference(collect(y), expected) < 1e-12);
}

/// What became of all pairs of layouts on all ranks: refused alike before anything was sent, or right.
struct tally {
  int right = 0, wrong = 0, refused = 0;
  friend bool operator==(const tally&, const tally&) = default;
};

/// Y = A X and A^T X with A distributed as `how(m, A's layout, X's layout)`, for all 27 x 27 pairs of
/// layouts.
template <class How>
tally every_pair_of_layouts(mesh_shape shape, How how) {
  const problem p{{13, 13}, 5};
  const std::vector<double> y_expected = product(p.entries, p.shape, p.width, false);
  const std::vector<double> z_expected = product(p.entries, p.shape, p.width, true);
  tally found;
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto mine = share(p.entries, m);
    tally here;
    for (const layout a_layout : every_layout())
      for (const layout x_layout : every_layout()) try {
          const auto a = how(m, policy{"mine", a_layout, x_layout}, p.shape, mine);
          const auto x = generate<double>(m, x_layout, {13, p.width}, field(0));
          const bool same = largest_difference(collect(spmm(a, x)), y_expected) < 1e-12 &&
                            largest_difference(collect(spmm(transposed(a), x)), z_expected) < 1e-12;
          ++(same ? here.right : here.wrong);
        } catch (const shape_error&) {
          ++here.refused;
        } catch (const mesh_error&) {
          ++here.refused;
        }
    const global_index all = world.all_reduce(global_index{here.right + 1000 * here.wrong});
    CHECK(all == m.size() * global_index{here.right + 1000 * here.wrong});
    if (m.rank() == 0) found = here;
  });
  return found;
}

TEST_CASE("spmm: of all pairs of layouts, each multiplies right or is refused") {
  if (sanitized) return;
  for (const symmetry kind : {symmetry::general, symmetry::one_way}) {
    const auto by_policy = [&](const mesh<host>& m, const policy& p, matrix_shape n, const auto& entries) {
      return distribute(m, p, n, entries, kind);
    };
    const auto by_layout = [&](const mesh<host>& m, const policy& p, matrix_shape n, const auto& entries) {
      return distribute(m, p.sparse, n, entries, kind);
    };
    CHECK(every_pair_of_layouts({2, 2, 2}, by_policy) == tally{4, 0, 725});
    CHECK(every_pair_of_layouts({2, 2, 1}, by_policy) == tally{6, 0, 723});
    CHECK(every_pair_of_layouts({2, 2, 2}, by_layout) == tally{18, 0, 711});
  }
}

TEST_CASE("every policy on every mesh gives A X and A^T X") {
  const problem p{{47, 47}, 5};
  for_each_mesh(rank_counts, [&](auto policy, mesh_shape shape) { check_even(policy, shape, p, {}); });
}

TEST_CASE("every schedule and row_exchange gives the same product") {
  const problem p{{29, 29}, 7};
  for_each_mesh(std::array{4, 6, 12}, [&](auto policy, mesh_shape shape) {
    for (const spmm_options& o : every_option) check_even(policy, shape, p, o);
  });
}

TEST_CASE("alpha A X + beta Y, where the operands lie and where they travel") {
  const problem p{{29, 29}, 7};
  const std::vector<double> once = product(p.entries, p.shape, p.width, false);
  on_each_mesh(std::array{1, 4, 6, 12}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto a = distribute(m, policy, p.shape, share(p.entries, m));
    for (const spmm_options& o : every_option)
      for (const layout l : {policy.dense, vertex_rows}) check_update(a, l, p, once, o);
  });
}

TEST_CASE("rows of A in another order leave every bit of Y, and what travels, as they are") {
  const problem p{{47, 47}, 5};
  on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto a = distribute(m, policy, p.shape, share(p.entries, m));
    const auto x = generate<double>(m, policy.dense, {p.shape.cols, p.width}, field(0));
    for (spmm_options o : every_option) {
      std::vector<std::vector<double>> found;
      for (const auto order : {local::row_order::natural, local::row_order::clustered}) {
        o.row_order = order;
        auto y = generate<double>(m, policy.dense, {p.shape.rows, p.width}, field(1));
        spmm_plan plan(a, x, o);
        CHECK(plan.options().row_order == order);
        plan(x, y);
        run_as_predicted(m, plan, 1, x, 0.5, y);
        found.push_back(collect(y));
        const bool said = plan.explain().find("rows of A in another order") != std::string::npos;
        if (order == local::row_order::natural) CHECK_FALSE(said);
        if (order != local::row_order::natural && m.shape().size() == 1) CHECK(said);
      }
      CHECK(found[0] == found[1]);
    }
  });
}

void check_forecast(const memory::far_traffic& said, const memory::far_traffic& found) {
  CHECK(said.read == found.read);
  CHECK(said.written == found.written);
  CHECK(said.chunks == found.chunks);
  CHECK(said.operations == found.operations);
  CHECK(said.near == found.near);
  CHECK(said.rows_read == found.rows_read);
}

TEST_CASE("explained in a sentence") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const problem p{{29, 29}, 7};
    const auto a = distribute(m, row_1d, p.shape, share(p.entries, m));
    const auto x = generate<vertex_rows, double>(m, {29, p.width}, field(0));
    const spmm_plan plan(a, x, {stationary::automatic, row_exchange::full});
    CHECK(plan.explain() ==
          "A X with " + to_string(row_1d.dense) +
              ", Y stationary, whole blocks of X are exchanged: " + std::to_string(plan.predicted().words) +
              " words are received and " + std::to_string(plan.multiplications()) + " multiplied");
    const auto b = distribute(m, row_1d, p.shape, share(p.entries, m), symmetry::one_way);
    const auto sums = spmm_plan(transposed(b), x, {stationary::automatic, row_exchange::full}).explain();
    CHECK(sums.find("of sums are exchanged, sums are taken along row: ") != std::string::npos);
  });
}

TEST_CASE("a plan explains along which axes ranks add up their parts of Y") {
  const auto along = [](mesh_shape shape, const policy& named, stationary stays) {
    std::string found;
    on_mesh(shape, [&](const host_mesh& m) {
      const problem p{{29, 29}, 7};
      const auto a = distribute(m, named, p.shape, share(p.entries, m));
      const dense<double, dynamic_layout, host> x(m, named.dense, {29, p.width});  // (29/., 7/.)
      const std::string sentence = spmm_plan(a, x, {stays}).explain(), mark = "sums are taken along ";
      const std::size_t at = sentence.find(mark);
      if (m.rank() == 0 && at != sentence.npos) found = sentence.substr(at + mark.size(), 9);
    });
    return found.substr(0, found.find(':'));
  };
  CHECK(along({2, 2, 2}, split_3d, stationary::a) == "col+depth");
  CHECK(along({2, 2, 1}, grid_2d, stationary::a) == "col");
  CHECK(along({2, 2, 1}, grid_2d, stationary::c).empty());
  CHECK(along({2, 1, 2}, replicated_1_5d, stationary::c) == "depth");
}

/// y = A x, then 2 A x - y, and the same of A^T, on a mesh whose ranks have this queue.
std::vector<double> products_on(const communicator& world, mesh_shape shape, const policy& named,
                                const problem& p, spmm_options options, const device_queue<host>& q) {
  const mesh<host> m(world, shape, q, 200);
  const auto a = distribute(m, named, p.shape, share(p.entries, m));
  std::vector<double> all;
  for (const bool transpose : {false, true}) {
    const auto of = transpose ? transposed(a) : a;
    const auto x = generate<double>(m, named.dense, {of.shape().cols, p.width}, field(0));
    dense<double, dynamic_layout, host> y(m, named.dense, of.row_blocking(), x.col_blocking());
    spmm_plan plan(of, x, options);
    const far_forecast said = plan.forecast(x, y);
    auto* const channel = far_of(q);
    const memory::far_traffic before = channel == nullptr ? memory::far_traffic{} : channel->traffic();
    plan(x, y);
    if (channel == nullptr)
      CHECK(said.entries().empty());
    else
      check_forecast(said.total(), channel->traffic() - before);
    plan(2, x, -1, y);
    const auto whole = collect(y);
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

TEST_CASE("far operands: every policy and schedule gives the same products") {
  const problem p{{147, 147}, 7};
  for_each_mesh(std::array{1, 2, 4, 6}, [&](auto policy, mesh_shape shape) {
    if (sanitized && shape != default_mesh(policy, shape.size())) return;
    const auto store = new_far_store();
    on_threads(shape.size(), [&](const communicator& world) {
      for (const spmm_options& o : every_option) {
        const device_queue<host> near, far;
        use_far(far, {.store = store, .window = 4096});
        const auto expected = products_on(world, shape, policy, p, o, near);
        CHECK(largest_difference(products_on(world, shape, policy, p, o, far), expected) < 1e-12);
        const memory::far_traffic& t = far_of(far)->traffic();
        CHECK(t.rows_read > 0);
        CHECK(t.chunks > 4);
        CHECK(far.meter()->current() == 4096);
        CHECK(far.meter()->peak() == 4096);
      }
    });
  });
}

TEST_CASE("tiles in parts of few entries give the same product") {
  const problem p{{29, 29}, 7};
  for_each_mesh(std::array{1, 4, 6}, [&](auto policy, mesh_shape shape) {
    for (const spmm_options& o : every_option) check_even(policy, shape, p, o, shape.size() == 4 ? 20 : 50);
  });
}

TEST_CASE("fewer columns or rows than ranks, one column, an empty matrix") {
  for (const problem& p :
       {problem{{5, 5}, 2}, problem{{31, 31}, 1}, problem{{9, 9}, 3, {}}, problem{{1, 1}, 1}})
    for_each_mesh(std::array{6, 9, 27},
                  [&](auto policy, mesh_shape shape) { check_even(policy, shape, p, {}); });
}

TEST_CASE("rectangular A") {
  for (const problem& p : {problem{{23, 41}, 4}, problem{{40, 11}, 3}})
    for_each_mesh(std::array{4, 6, 8}, [&](auto policy, mesh_shape shape) {
      for (const spmm_options& o : every_option) check_even(policy, shape, p, o);
    });
}

TEST_CASE("blocks balanced by nonzeros, and given ones") {
  const problem p{{43, 43}, 6};
  std::vector<global_index> weights(43, 0);
  for (const auto& e : p.entries) ++weights[static_cast<std::size_t>(e.row)];
  on_each_mesh(std::array{4, 12}, [&](const host_mesh& m, const partita::policy& policy) {
    const blocking balanced = blocking::balanced(weights, m.shape(), nesting::rows);
    std::vector<global_index> sizes(static_cast<std::size_t>(m.shape().row), 1);
    sizes.front() += 43 - m.shape().row;
    const blocking given = blocking::given(sizes, m.shape(), nesting::rows);
    for (const spmm_options& o : every_option) check_product(m, policy, p, balanced, balanced, false, o);
    check_product(m, policy, p, balanced, given, true, {});
  });
}

TEST_CASE("a symmetric A is its own transpose and stores it once") {
  std::vector<triplet<double>> entries;
  for (const auto& e : sparse_entries({30, 30})) entries.insert(entries.end(), {e, {e.col, e.row, e.value}});
  on_each_mesh(std::array{4}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto mine = share(entries, m);
    const auto once = distribute(m, policy.sparse, {30, 30}, mine, symmetry::symmetric);
    CHECK(once.local() == transposed(once).local());
    const auto x = generate<double>(m, policy.dense, {30, 4}, field(0));
    CHECK(largest_difference(collect(spmm(transposed(once), x)), product(entries, {30, 30}, 4, true)) <
          1e-12);
  });
}

TEST_CASE("layouts that a policy does not multiply go to its own and back, as predicted") {
  const problem p{{31, 31}, 5};
  on_each_mesh(std::array{1, 4, 6, 8}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto a = distribute(m, policy, p.shape, share(p.entries, m));
    const auto x = generate<vertex_rows, double>(m, {31, 5}, field(0));
    dense<double, vertex_rows, host> y(m, x.shape());
    spmm_plan plan(transposed(a), x);
    run_as_predicted(m, plan, x, y);
    CHECK(largest_difference(collect(y), product(p.entries, p.shape, p.width, true)) < 1e-12);
  });
}

TEST_CASE("layouts that do not fit are named") {
  expect_error<shape_error>(
      {2, 1, 1},
      "rows cut by row, columns by none and X with rows cut by col, columns by none cannot be multiplied",
      [](const host_mesh& m) {
        const auto a = distribute(m, row_1d.sparse, {4, 4}, std::vector<triplet<double>>{});
        (void)spmm(a, generate<double>(m, layout{axis::col, {}}, {4, 2}, field(0)));
      });
  expect_error<shape_error>({2, 1, 1}, "planned for X and Y with rows cut by row", [](const host_mesh& m) {
    const auto a = distribute(m, row_1d, {4, 4}, std::vector<triplet<double>>{});
    auto x = generate<double>(m, row_1d.dense, {4, 2}, field(0));
    auto whole = redistribute(x, replicated);
    spmm_plan(a, x)(x, whole);
  });
}

TEST_CASE("operands that do not fit are named with their shapes") {
  for (const policy& p : {row_1d, grid_2d, feature_column})
    expect_error<shape_error>({1, 1, 1}, "spmm: Y of 9 x 4 must not be the memory of X",
                              [&](const host_mesh& m) {
                                const auto a = distribute(m, p, {9, 9}, sparse_entries({9, 9}));
                                auto x = generate<double>(m, p.dense, {9, 4}, field(0));
                                spmm_plan(a, x)(x, x);
                              });
  expect_error<shape_error>(2, "spmm: A of 9 x 9 is on mesh 2x1x1, X of 9 x 3 on mesh 1x2x1",
                            [](const communicator& world) {
                              const mesh<host> m(world, {2, 1, 1}), other(world, {1, 2, 1});
                              const auto a = distribute(m, row_1d, {9, 9}, share(sparse_entries({9, 9}), m));
                              spmm(a, generate<double>(other, row_1d.dense, {9, 3}, field(0)));
                            });
  expect_error<shape_error>(
      {2, 1, 1}, "spmm: the rows of X of 9 x 3 are not in the blocks of the columns of A of 9 x 9",
      [](const host_mesh& m) {
        const auto a = distribute(m, row_1d, {9, 9}, share(sparse_entries({9, 9}), m));
        const auto x = generate<double>(m, row_1d.dense, blocking::given({8, 1}, m.shape(), nesting::rows),
                                        blocking::even(3, m.shape(), nesting::cols), field(0));
        (void)spmm(a, x);
      });
  expect_error<shape_error>({2, 1, 1}, "spmm: A of 9 x 9 cannot multiply X of 8 x 3", [](const host_mesh& m) {
    const problem p{{9, 9}, 3};
    const blocking nine = blocking::even(9, m.shape(), nesting::rows);
    const auto a = distributed(m, row_1d.sparse, p, nine, nine);
    const auto x = generate<row_1d.dense, double>(m, {8, 3}, field(0));
    (void)spmm(a, x);
  });
}

TEST_CASE("Y goes back to its layout in parts, with the bits and the words of a product in one layout") {
  const problem p{{2100, 2050}, 128, sparse_entries({2100, 2050}, 3)};
  for (const policy& named : {feature_column, feature_row, replicated_1_5d, grid_2d, split_3d})
    for (const stationary kept : {stationary::c, stationary::a})
      for (const int slices : {1, 5}) {
        if (sanitized && (named.name != grid_2d.name || kept != stationary::a || slices == 1)) continue;
        on_mesh(default_mesh(named, 4), [&](const host_mesh& m) {
          const auto a = distribute(m, named, p.shape, share(p.entries, m));
          spmm_options o{.stationary = kept, .rows = row_exchange::sparsity_aware};
          o.slices = slices;
          const auto product_of = [&](layout l) {
            const auto x = generate<double>(m, l, {2050, 128}, field(0));
            auto y = generate<double>(m, l, {2100, 128}, field(1));
            spmm_plan plan(a, x, o);
            m.ledger().clear();
            plan(x, y);
            CHECK(m.ledger().total() == plan.predicted());
            return std::pair(collect(y), plan.predicted());
          };
          const auto [inner, of_inner] = product_of(named.dense);
          const auto change = [&](global_index rows, layout from, layout to) {
            return redistribution<double, host>::predicted(m, blocking::even(rows, m.shape(), nesting::rows),
                                                           blocking::even(128, m.shape(), nesting::cols),
                                                           from, to);
          };
          CHECK(algebra::detail::parts_of_result<double>(m, 2100, 128) == 4);
          for (const layout l : {layout(vertex_rows), layout{axis::row, {}}}) {
            const auto [outer, of_outer] = product_of(l);
            CHECK(inner == outer);
            if (partition::multipliable(named.sparse, l)) continue;
            if (l == vertex_rows && m.shape().size(named.sparse.cols) > 1 &&
                (kept == stationary::a ||
                 m.shape().depth > 1)) {  // rows of X stay, and sums are where they are
              const traffic less = m.shape().depth > 1 ? traffic{525 * 128, 2 - slices}
                                                       : change(2050, named.dense, vertex_rows);
              CHECK(of_outer == of_inner - less);
              continue;
            }
            const traffic there = change(2050, l, named.dense), back = change(2100, named.dense, l);
            CHECK(of_outer == of_inner + there + traffic{back.words, 4 * back.messages});
          }
        });
      }
}

}  // namespace test_spmm
