// SPDX-License-Identifier: Apache-2.0
// Rows gathered by ids from every layout, and added back: values, traffic, memory and errors.
#include "partita/transfer/gather_rows.hpp"

#include "support/gathered_rows.hpp"

namespace test_gather_rows {

using namespace test_support;

std::string to_string(const problem& p) {
  return partita::to_string(p.x.shape()) + " on mesh " + partita::to_string(p.mesh) + ", " +
         partita::to_string(p.x.axes) + (p.columns == transfer::gathered_columns::own ? ", own columns" : "");
}

/// G of a rank and a list.
double gradient(int rank, std::size_t c, global_index i, global_index j) {
  return element(i, j, 100 + 10 * static_cast<std::uint64_t>(rank) + c);
}

host_mesh alone(const host_mesh& m) { return host_mesh(self::world(), mesh_shape(), m.queue()); }

/// How many elements of the rows of all lists are wrong; their inner product with G is added to `dot`.
std::size_t wrong_rows(const gather_rows_plan<double, host>& plan, const problem& p, const host_mesh& m,
                       const host_dense<>& x, double& dot) {
  std::size_t wrong = 0;
  const auto lists = lists_of(m.rank(), p.lists, p.round, p.x.rows.size());
  for (std::size_t c = 0; c < p.lists; ++c) {
    row_block y(alone(m), plan.shape(c));
    plan.rows(c, x, y);
    const interval cols = p.wanted(m.at());
    if (y.shape() != matrix_shape{std::ssize(lists[c]), cols.size()}) return 1;
    for (local_index i = 0; i < y.local().rows; ++i)
      for (local_index j = 0; j < y.local().cols; ++j) {
        const double value = y.local()(i, j);
        if (value != element(lists[c][static_cast<std::size_t>(i)], cols.begin + j, 1)) ++wrong;
        dot += value * gradient(m.rank(), c, i, cols.begin + j);
      }
  }
  return wrong;
}

/// Adds the gradients of all lists.
void add(gather_rows_plan<double, host>& plan, const problem& p, const host_mesh& m) {
  for (std::size_t c = 0; c < p.lists; ++c) {
    const auto g = generate<vertex_rows, double>(
        alone(m), plan.shape(c),
        [&](global_index i, global_index j) { return gradient(m.rank(), c, i, p.wanted(m.at()).begin + j); });
    plan.add(c, g);
  }
}
void scatter(gather_rows_plan<double, host>& plan, const problem& p, const host_mesh& m, host_dense<>& z) {
  add(plan, p, m);
  plan.scatter(z);
}

/// Test matrix 2 plus the gradients of all ranks, entry by entry.
std::vector<double> scattered(const problem& p) {
  std::vector<double> z = whole(p.x.shape(), field(2));
  for (int r = 0; r < p.mesh.size(); ++r) {
    const auto lists = lists_of(r, p.lists, p.round, p.x.rows.size());
    const coordinates at = p.mesh.at(r);
    for (std::size_t c = 0; c < p.lists; ++c)
      for (std::size_t i = 0; i < lists[c].size(); ++i)
        for (global_index j = p.wanted(at).begin; j < p.wanted(at).end; ++j)
          z[static_cast<std::size_t>(lists[c][i] * p.x.cols.size() + j)] +=
              gradient(r, c, static_cast<global_index>(i), j);
  }
  return z;
}

/// Whether all copies of this rank's block have the same bits.
bool copies_agree(const problem& p, const host_mesh& m, const host_dense<>& z) {
  std::uint64_t bits = 0;
  for (const double v : z.values()) bits = base::mixed_bits(bits ^ std::bit_cast<std::uint64_t>(v));
  const auto all = m.world().all_gather(static_cast<global_index>(bits));
  for (int q = 0; q < m.size(); ++q)
    if (p.copies(m.at(), p.mesh.at(q)) &&
        all[static_cast<std::size_t>(q)] != all[static_cast<std::size_t>(m.rank())])
      return false;
  return true;
}

/// Sums taken by touched rows are those that scatter adds to 0, bit for bit, and no row is missing.
void takes(gather_rows_plan<double, host>& plan, const problem& p, const host_mesh& m,
           const host_dense<>& scattered) {
  const std::vector<global_index>& rows = plan.touched_rows();
  const matrix_view<const double> all = scattered.local();
  row_block sums(alone(m), {std::ssize(rows), all.cols});
  add(plan, p, m);
  m.ledger().clear();
  plan.take(sums);
  CHECK(heard(m) == p.scatters(m.at()));
  std::set<global_index> touched;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!touched.insert(rows[i]).second) ++wrong;
    for (local_index j = 0; j < all.cols; ++j)
      if (sums.local()(static_cast<local_index>(i), j) != all(static_cast<local_index>(rows[i]), j)) ++wrong;
  }
  for (local_index i = 0; i < all.rows; ++i)
    for (local_index j = 0; j < all.cols; ++j)
      if (!touched.contains(i) && all(i, j) != 0) ++wrong;
  CHECK(wrong == 0);
}

void gathers_and_scatters(gather_rows_plan<double, host>& plan, const problem& p, const host_mesh& m) {
  const coordinates me = m.at();
  const auto x = generate<double>(m, p.x.axes, p.x.rows, p.x.cols, field(1));
  INFO(to_string(p), ", rank ", m.rank());
  m.ledger().clear();
  plan.assign(lists_of(m.rank(), p.lists, p.round, p.x.rows.size()));
  CHECK(heard(m) == p.assigns(me));
  CHECK(plan.predicted_assign() == p.assigns(me));
  CHECK(plan.predicted() == p.gathers(me));
  CHECK(plan.remote_rows() == p.remote(me));
  CHECK(plan.unique_rows() == std::ssize(p.distinct(me)));
  global_index requested = 0;
  for (const id_list& ids : lists_of(m.rank(), p.lists, p.round, p.x.rows.size()))
    requested += std::ssize(ids);
  CHECK(plan.requested_rows() == requested);

  double dots[2] = {0, 0};
  for (int run = 0; run < 2; ++run) {
    m.ledger().clear();
    plan.start(x);
    plan.finish();
    CHECK(heard(m) == p.gathers(me));
    dots[0] = 0;
    CHECK(wrong_rows(plan, p, m, x, dots[0]) == 0);
  }

  const std::vector<double> expected = scattered(p);
  std::vector<double> first;
  for (int run = 0; run < 2; ++run) {
    auto z = generate<double>(m, p.x.axes, p.x.rows, p.x.cols, field(2));
    m.ledger().clear();
    scatter(plan, p, m, z);
    CHECK(heard(m) == p.scatters(me) + (run == 0 ? p.lists_of_copies(me) : traffic{}));
    CHECK(plan.predicted_scatter() == p.scatters(me));
    CHECK(mismatches(
              z,
              [&](global_index i, global_index j) {
                return expected[static_cast<std::size_t>(i * p.x.cols.size() + j)];
              },
              1e-13) == 0);
    CHECK(copies_agree(p, m, z));
    if (run == 0) first.assign(z.values().begin(), z.values().end());
    CHECK(std::equal(first.begin(), first.end(), z.values().begin()));
  }
  // <R X, G> = <X, R^T G>, of which each copy of X has all.
  auto z = generate<double>(m, p.x.axes, p.x.rows, p.x.cols, [](auto, auto) { return 0; });
  scatter(plan, p, m, z);
  for (std::size_t i = 0; i < z.values().size(); ++i) dots[1] += x.values()[i] * z.values()[i];
  dots[1] /= p.mesh.size(partition::every_axis - p.x.axes.used());
  m.world().all_reduce(dots);
  CHECK(std::abs(dots[0] - dots[1]) < 1e-11);
  takes(plan, p, m, z);
}

void every_layout_of(mesh_shape shape, const blocking& rows, const blocking& cols) {
  const std::vector<layout> layouts = every_layout();
  on_mesh(shape, [&](const host_mesh& m) {
    for (std::size_t i = 0; i < layouts.size(); ++i)
      for (const transfer::gathered_columns columns :
           {transfer::gathered_columns::whole, transfer::gathered_columns::own}) {
        if (sanitized && (i + static_cast<std::size_t>(m.size())) % 3 != 0) continue;
        const layout l = layouts[i];
        const partition::block_layout x{rows, cols, l};
        gather_rows_plan<double, host> plan(m, x, columns);
        // More, fewer and no lists, for one plan.
        for (const std::size_t lists : {3, 1, 0, 4})
          gathers_and_scatters(plan, {shape, x, columns, lists, 7 * lists + l.rows.bits}, m);
      }
  });
}
void every_layout_of(mesh_shape shape, matrix_shape size) {
  const partition::block_layout even = partition::evenly(size, shape, {});
  every_layout_of(shape, even.rows, even.cols);
}

TEST_CASE("gather_rows: every layout, lists and traffic") {
  every_layout_of({1, 1, 1}, {13, 5});
  every_layout_of({2, 1, 1}, {13, 5});
  every_layout_of({1, 3, 1}, {13, 5});
  every_layout_of({2, 2, 1}, {13, 5});
  every_layout_of({1, 2, 3}, {13, 7});
  every_layout_of({2, 2, 2}, {23, 3});
}

TEST_CASE("gather_rows: empty blocks of rows and columns, and matrices without rows or columns") {
  const mesh_shape shape{3, 2, 1};
  every_layout_of(shape, blocking::given({0, 11, 2}, shape, nesting::rows),
                  blocking::given({0, 3}, shape, nesting::cols));
  every_layout_of({2, 1, 2}, {5, 0});
  every_layout_of({2, 1, 2}, {0, 5});
}

TEST_CASE("gather_rows: the operands of policies on 9 and 12 ranks") {
  for (const mesh_shape shape : {mesh_shape{3, 3, 1}, mesh_shape{3, 2, 2}})
    on_mesh(shape, [&](const host_mesh& m) {
      for (const layout l : {row_1d.dense, grid_2d.dense, split_3d.dense, replicated_1_5d.dense,
                             feature_column.dense, feature_row.dense, vertex_rows, replicated}) {
        const auto x = partition::evenly({29, 5}, shape, l);
        gather_rows_plan<double, host> plan(m, x);
        gathers_and_scatters(plan, {shape, x, transfer::gathered_columns::whole, 2, 5}, m);
      }
    });
}

TEST_CASE("gather_rows and scatter_add_rows, run once") {
  on_mesh({2, 3, 1}, [](const host_mesh& m) {
    const auto value = [](global_index i, global_index j) { return static_cast<float>(element(i, j, 3)); };
    auto x = generate<grid_2d.dense, float>(m, {13, 8}, value);
    const id_list ids{12, static_cast<global_index>(m.rank()), 12, 0};
    const auto y = gather_rows(x, ids);
    check_equals(
        y, [&](global_index i, global_index j) { return value(ids[static_cast<std::size_t>(i)], j); }, 0,
        "gather_rows");
    const auto own = gather_rows(x, ids, transfer::gathered_columns::own);
    CHECK(own.shape() == matrix_shape{4, x.col_range().size()});
    CHECK(own.local()(3, 0) == value(0, x.col_range().begin));
    const auto ones = generate<vertex_rows, float>(y.mesh(), {4, 8}, [](auto, auto) { return 1; });
    scatter_add_rows(ones, ids, x);
    check_equals(
        x,
        [&](global_index i, global_index j) {
          return value(i, j) + (i == 12 ? 12.0f : i == 0 ? 7.0f : i < 6 ? 1.0f : 0.0f);
        },
        1e-5, "scatter_add_rows");
  });
}

TEST_CASE("gather_rows: steady use allocates nothing, and growth rarely does") {
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    const auto x = generate<double>(m, grid_2d.dense, {500, 6}, field(1));
    auto z = generate<double>(m, {axis::row, {}}, {500, 6}, field(2));
    gather_rows_plan<double, host> plan(x), adjoint(z);
    const host_mesh here = alone(m);
    const auto allocations = [&] { return m.queue().meter()->allocations(); };
    std::vector<row_block> blocks;
    for (global_index k = 0; k <= 300; ++k) blocks.emplace_back(here, matrix_shape{k, 6});
    const auto use = [&](std::size_t count) {
      id_list ids;
      for (std::size_t i = 0; i < count; ++i)
        ids.push_back(static_cast<global_index>((i * 37 + static_cast<std::size_t>(m.rank())) % 500));
      plan.assign(ids);
      plan(x, blocks[count]);
      CHECK(mismatches(blocks[count], [&](global_index i, global_index j) {
              return element(ids[static_cast<std::size_t>(i)], j, 1);
            }) == 0);
      adjoint.assign(ids);
      adjoint.add(0, blocks[count]);
      adjoint.scatter(z);
    };
    use(200);
    const auto before = allocations();
    for (const std::size_t count : {200, 3, 0, 120, 199}) use(count);
    CHECK(allocations() == before);
    // Each of 24 buffers, at most seven times until it is half as large again: by a sixteenth each time.
    for (std::size_t count = 201; count <= 300; ++count) use(count);
    CHECK(allocations() - before <= 7 * 24);
  });
}

/// A table that has the rows of X that it is asked for, the last one first, with all signs changed; or, as
/// one that has no room, none.
struct negated_rows : memory::row_cache {
  negated_rows(const host_dense<>& matrix, bool room) : x(matrix), has_room(room) {}

  local_index places() const override { return has_room ? x.local().rows : 0; }
  bool chooses() const override { return false; }
  void begin() override {}
  void foresee(std::span<const global_index>) override {}
  void end_batch() override {}
  std::span<const local_index> assign(std::span<const local_index> rows) override {
    found.clear(), values.clear();
    if (!has_room) return found;
    for (std::size_t k = rows.size(); k-- > 0;)
      for (local_index j = 0; j < x.local().cols; ++j) values.push_back(-x.local()(rows[k], j));
    for (std::size_t k = rows.size(); k-- > 0;) found.push_back(static_cast<local_index>(k));
    return found;
  }
  void finish() override {}
  const std::byte* data() const override { return reinterpret_cast<const std::byte*>(values.data()); }

  const host_dense<>& x;
  bool has_room;
  std::vector<double> values;
  std::vector<local_index> found;
};

TEST_CASE("gather_rows: own rows are read in a table that has them, until the next lists") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const auto x = generate<double>(m, vertex_rows, {13, 5}, field(1));
    gather_rows_plan<double, host> plan(x);
    const id_list ids{12, 0, 5, 12, 7};
    row_block y(alone(m), {std::ssize(ids), 5});
    const auto gathered_from_table = [&](std::optional<bool> table_has_room) {
      negated_rows table(x, table_has_room.value_or(false));
      plan.assign(ids);
      if (table_has_room) plan.read_own(table);
      plan(x, y);
      const bool reads_table = table.has_room;
      CHECK(mismatches(y, [&](global_index i, global_index j) {
              const global_index id = ids[static_cast<std::size_t>(i)];
              return element(id, j, 1) * (reads_table && x.row_range().contains(id) ? -1 : 1);
            }) == 0);
    };
    gathered_from_table(true);
    gathered_from_table({});
    gathered_from_table(false);
    gathered_from_table(true);
  });
}

TEST_CASE("gather_rows: what it refuses") {
  const auto with_id = [](global_index id) {
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      const auto x = generate<double>(m, grid_2d.dense, {13, 5}, field(1));
      gather_rows_plan<double, host> plan(x);
      plan.assign(std::vector<id_list>{{0}, {1, 2, m.rank() == 3 ? id : 3}});
    });
  };
  expect_error<shape_error>("list 1 asks for row 13 of a matrix of 13 rows", [&] { with_id(13); });
  expect_error<shape_error>("list 1 asks for row -1 of a matrix of 13 rows", [&] { with_id(-1); });
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    const auto x = generate<double>(m, vertex_rows, {13, 5}, field(1)),
               other = generate<double>(m, vertex_rows, {12, 5}, field(1));
    gather_rows_plan<double, host> plan(x);
    row_block y(alone(m), {2, 5});
    expect_error<shape_error>("list 0 of a plan of 0 lists", [&] { plan(x, y); });
    plan.assign({3, 12});
    expect_error<shape_error>("list 0 asks for row 13 of", [&] { plan.assign({13}); });
    expect_error<error>("the rows of the lists have not been received", [&] { plan.rows(0, x, y); });
    expect_error<error>("finish was called without start", [&] { plan.finish(); });
    expect_error<shape_error>(
        "planned for 13 x 5, rows cut by row+col+depth, columns by none, was given a matrix of 12 x 5",
        [&] { plan.start(other); });
    plan.start(x);
    expect_error<error>("assign was called between start and finish", [&] { plan.assign({1}); });
    expect_error<error>("start was called between start and finish", [&] { plan.start(x); });
    plan.finish();
    plan.rows(0, x, y);
    CHECK(y.local()(1, 4) == element(12, 4, 1));
    row_block narrow(alone(m), {2, 4});
    expect_error<shape_error>("the rows of list 0 are 2 x 5 on one rank, but Y is 2 x 4 on mesh 1x1x1",
                              [&] { plan.rows(0, x, narrow); });
    expect_error<shape_error>("but G is 2 x 4", [&] { plan.add(0, narrow); });
    row_block cut(m, {2, 5});
    expect_error<shape_error>("Y is 2 x 5 on mesh 2x1x1", [&] { plan.rows(0, x, cut); });
  });
}

}  // namespace test_gather_rows
