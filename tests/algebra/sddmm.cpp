// SPDX-License-Identifier: Apache-2.0
// Sampled products on every policy and mesh, on tiles and on the in-edges of own vertices.
#include "partita/algebra/sddmm.hpp"

#include "partita/algebra/in_edge_sddmm.hpp"
#include "partita/transfer/edge_redistribution.hpp"
#include "support/edge_matrices.hpp"

namespace test_sddmm {

using namespace test_support;

constexpr matrix_shape shape{31, 31};
constexpr global_index width = 6;
constexpr double tolerance = 1e-12;

double left_entry(global_index i, global_index j) { return std::cos(static_cast<double>(2 * i - 5 * j)); }

/// e(v, u, h) of the sampled product, entry by entry.
double dot(global_index v, global_index u, global_index h, int heads) {
  double total = 0;
  for (global_index j = h * width / heads; j < (h + 1) * width / heads; ++j)
    total += left_entry(v, j) * element(u, j);
  return total;
}

TEST_CASE("sampled products over tiles, with words as predicted") {
  const auto entries = sparse_entries(shape, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange rows) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    const auto x = generate<double>(m, p.dense, {shape.cols, width}, field(0)),
               y = generate<double>(m, p.dense, {shape.rows, width}, left_entry);
    sddmm_plan sample(a, x, heads, rows);
    host_edges e(a, heads), twice(a, heads);
    m.ledger().clear();
    sample(y, x, e);
    same(heard(m), sample.predicted(), "a sampled product");
    const auto dots = [&](auto v, auto u, auto h) { return dot(v, u, h, heads); };
    CHECK_MESSAGE(largest_error(e, dots) < tolerance, std::string(p.name), " on ", to_string(m.shape()));
    sample(y, x, twice);
    sample(y, x, twice, 1.0);
    CHECK(largest_error(twice, [&](auto v, auto u, auto h) { return 2 * dots(v, u, h); }) < tolerance);
  });
}

TEST_CASE(
    "sampled products come to the owners of targets from tiles, or by gathering rows, with words as "
    "predicted") {
  const auto entries = sparse_entries(shape, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange rows) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    const transfer::in_edges<double, host> own(a);
    std::vector<double> expected, found(own.own_columns().size() * static_cast<std::size_t>(heads), -1);
    for (const auto& e : entries)  // in the order of rows and columns
      for (int h = 0; own.own().contains(e.row) && h < heads; ++h)
        expected.push_back(dot(e.row, e.col, h, heads));

    const auto x = generate<double>(m, p.dense, {shape.cols, width}, field(0)),
               y = generate<double>(m, p.dense, {shape.rows, width}, left_entry);
    edge_spmm_plan products(a, x, heads, rows);
    sddmm_plan sample(products);
    transfer::edge_redistribution<double, host> to_targets(a, own, x.col_blocking(), heads,
                                                           sample.summed_axes());
    host_edges e(a, products.heads_here());
    m.ledger().clear();
    sample.parts(y, x, e);
    same(heard(m), sample.predicted_parts(), "parts of a sampled product");
    m.ledger().clear();
    const std::span<double> there = to_targets(e.values(), found);
    same(heard(m), to_targets.predicted(), "a redistribution of edges");
    CHECK((there.data() == e.values().data()) == to_targets.in_place());
    CHECK((m.size() > 1 || to_targets.in_place()));
    CHECK_MESSAGE(largest_difference(std::vector(there.begin(), there.end()), expected) < tolerance,
                  std::string(p.name), " on ", to_string(m.shape()));

    algebra::in_edge_sddmm_plan<double, host> by_rows(own, heads, static_cast<local_index>(width / heads));
    std::fill(found.begin(), found.end(), -1);
    const auto whole_x = redistribute<vertex_rows>(x), whole_y = redistribute<vertex_rows>(y);
    m.ledger().clear();
    by_rows(whole_y, whole_x, found);
    same(heard(m), by_rows.predicted(), "a sampled product of gathered rows");
    CHECK_MESSAGE(largest_difference(found, expected) < tolerance, std::string(p.name), " on ",
                  to_string(m.shape()));
  });
}

TEST_CASE("values of other edges are refused") {
  const auto refused = [](const std::string& message, auto act) {
    expect_error<shape_error>({2, 1, 1}, message, [&](const host_mesh& m) {
      const auto a = distribute(m, row_1d.sparse, {6, 6}, std::vector<triplet<double>>{});
      const auto x = generate<double>(m, row_1d.dense, {6, 4}, field(0));
      sddmm_plan sample(a, x, 2);
      act(sample, a, x);
    });
  };
  refused("and 2 heads were given values of 1 heads", [](auto& sample, const auto& a, const auto& x) {
    host_edges e(a, 1);
    sample(x, x, e);
  });
  refused("over a pattern of 6 x 6, which is a different pattern",
          [](auto& sample, const auto& a, const auto& x) {
            host_edges e(distribute(a.mesh(), row_1d.sparse, {6, 6}, std::vector<triplet<double>>{}), 2);
            sample(x, x, e);
          });
}

}  // namespace test_sddmm
