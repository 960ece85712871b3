// Sampled products, softmax over rows, and products with edge values, on every policy and mesh, with their
// adjoints.
#include "partita/algebra/sddmm.hpp"

#include <doctest/doctest.h>
#include <map>

#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"

namespace test_sddmm {

using namespace partita;
using namespace test_support;

namespace {

constexpr extent shape{31, 31};
constexpr global_index width = 6;
constexpr double tolerance = 1e-12;

double left_entry(global_index i, global_index j) { return std::cos(static_cast<double>(2 * i - 5 * j)); }

/// e(v, u, h) of the sampled product, entry by entry.
double dot(global_index v, global_index u, int h, int heads) {
  double total = 0;
  for (global_index j = h * width / heads; j < (h + 1) * width / heads; ++j)
    total += left_entry(v, j) * element(u, j);
  return total;
}
/// The softmax of those over the entries of row v.
double softmax(const std::vector<triplet<double>>& entries, global_index v, global_index u, int h,
               int heads) {
  double total = 0;
  for (const auto& e : entries)
    if (e.row == v) total += std::exp(dot(v, e.col, h, heads));
  return std::exp(dot(v, u, h, heads)) / total;
}

/// How far the values of the entries that this rank holds are from expected(v, u, head), at most.
template <class Edges, class Expected>
double largest_error(const Edges& e, Expected expected) {
  const auto& a = e.pattern();
  const auto& m = e.mesh();
  const layout l = a.layout();
  const interval rows = a.row_blocking().block(l.rows, m.at());
  coordinates at = m.at();
  double largest = 0;
  e.for_parts([&](std::size_t t, const tile_part<double>& part) {
    at.row = static_cast<int>(t);
    const csr_view<double>& tile = part.entries;
    const global_index first = a.col_blocking().block(column_cut(l), at).begin;
    for (local_index i = 0; i < tile.rows; ++i)
      for (local_index k = tile.offsets[i]; k < tile.offsets[i + 1]; ++k)
        for (int h = 0; h < e.heads(); ++h) {
          const double found = part.values_in(e.values().data(), e.heads())[k * e.heads() + h];
          const double error =
              std::abs(found - expected(rows.begin + part.first_row + i, first + tile.columns[k], h));
          if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
        }
  });
  return largest;
}

void check_edges(const policy& p, mesh_shape mesh_size, local_index heads, exchange rows,
                 std::size_t tile_entries = most_tile_entries) {
  const auto entries = sparse_entries(shape, 4);
  std::map<std::pair<global_index, global_index>, std::vector<double>> alpha;
  for (const auto& entry : entries)
    for (int h = 0; h < heads; ++h)
      alpha[{entry.row, entry.col}].push_back(softmax(entries, entry.row, entry.col, h, heads));
  on_threads(mesh_size.size(), [&](const communicator& world) {
    const mesh<host> m(world, mesh_size, queue<host>(), tile_entries);
    const auto mine = share(entries, m.rank(), m.size());
    const auto pattern = distribute(m, p.sparse, shape, mine);
    const auto x = generate<double>(m, p.dense, {shape.cols, width}, field(0));
    const auto y = generate<double>(m, p.dense, {shape.rows, width}, left_entry);
    edge_products products(pattern, x, heads, {stationary::automatic, rows});
    edge_values<double, host> e(pattern, heads), twice(pattern, heads);

    products.sddmm(y, x, e);
    const auto dots = [&](auto v, auto u, int h) { return dot(v, u, h, heads); };
    CHECK(largest_error(e, dots) < tolerance);
    products.sddmm(y, x, twice);
    products.sddmm(y, x, twice, 1.0);
    CHECK(largest_error(twice, [&](auto v, auto u, int h) { return 2 * dots(v, u, h); }) < tolerance);

    edge_softmax(e);
    const auto alphas = [&](auto v, auto u, int h) { return alpha.at({v, u})[static_cast<std::size_t>(h)]; };
    CHECK(largest_error(e, alphas) < tolerance);

    std::vector<double> forward(shape.rows * width, 0), backward(shape.cols * width, 0);
    for (const auto& entry : entries)
      for (global_index j = 0; j < width; ++j) {
        const double a = alpha.at({entry.row, entry.col})[static_cast<std::size_t>(j * heads / width)];
        forward[static_cast<std::size_t>(entry.row * width + j)] += a * element(entry.col, j);
        backward[static_cast<std::size_t>(entry.col * width + j)] += a * left_entry(entry.row, j);
      }
    dense<double, dynamic_layout, host> product(m, p.dense, x.row_blocking(), x.col_blocking());
    products.multiply(e, x, product);
    CHECK_MESSAGE(largest_difference(collect(product), forward) < tolerance, std::string(p.name), " on ",
                  to_string(mesh_size));
    products.multiply_transposed(e, y, product);
    CHECK_MESSAGE(largest_difference(collect(product), backward) < tolerance, std::string(p.name), " on ",
                  to_string(mesh_size));

    edge_softmax_gradient(e, twice);                      // of a loss with d loss / d alpha = 2 dot
    std::map<std::pair<global_index, int>, double> mean;  // of d loss / d alpha over the entries of a row
    for (const auto& [at, a] : alpha)
      for (int h = 0; h < heads; ++h)
        mean[{at.first, h}] += a[static_cast<std::size_t>(h)] * 2 * dots(at.first, at.second, h);
    const auto gradient = [&](auto v, auto u, int h) {
      return alphas(v, u, h) * (2 * dots(v, u, h) - mean[{v, h}]);
    };
    CHECK(largest_error(twice, gradient) < tolerance);
  });
}

}  // namespace

TEST_CASE("edge values under every policy and mesh, one head and three") {
  for_each_mesh(std::array{1, 2, 4, 6, 9, 12}, [](auto policy, mesh_shape m) {
    for (local_index heads : {1, 3})
      for (exchange rows : {exchange::whole, exchange::needed}) check_edges(policy, m, heads, rows);
  });
}

TEST_CASE("edge values over tiles in parts") {
  for_each_mesh(std::array{1, 4, 6}, [](auto policy, mesh_shape m) {
    for (exchange rows : {exchange::whole, exchange::needed})
      check_edges(policy, m, 3, rows, m.size() == 4 ? 13 : 50);
  });
}

TEST_CASE("values of other edges are refused") {
  const auto refused = [](const std::string& message, auto act) {
    expect_error<shape_error>(message, [&] {
      on_threads(2, [&](const communicator& world) {
        const mesh<host> m(world, {2, 1, 1});
        const auto a = distribute(m, row_1d.sparse, {6, 6}, std::vector<triplet<double>>{});
        const auto x = generate<double>(m, row_1d.dense, {6, 4}, field(0));
        edge_products products(a, x, 2);
        act(products, a, x);
      });
    });
  };
  refused("and 2 heads were given values of 1 heads", [](auto& products, const auto& a, const auto& x) {
    edge_values<double, host> e(a, 1);
    products.sddmm(x, x, e);
  });
  refused("over a pattern of 6 x 6, which is another one", [](auto& products, const auto& a, const auto& x) {
    edge_values<double, host> e(distribute(a.mesh(), row_1d.sparse, {6, 6}, std::vector<triplet<double>>{}),
                                2);
    products.sddmm(x, x, e);
  });
}

TEST_CASE("values that overflow exp have a finite softmax") {
  on_threads(2, [](const communicator& world) {
    const mesh<host> m(world, {2, 1, 1});
    std::vector<triplet<double>> mine;
    if (world.rank() == 0) mine = {{0, 0, 1}, {0, 3, 1}, {3, 1, 1}, {3, 2, 1}};
    edge_values<double, host> e(distribute(m, row_1d.sparse, {4, 4}, mine), 1);
    e.values()[0] = 1e4;
    e.values()[1] = world.rank() == 0 ? 1e4 : -1e6;
    edge_softmax(e);
    CHECK(std::vector<double>(e.values().begin(), e.values().end()) ==
          (world.rank() == 0 ? std::vector{0.5, 0.5} : std::vector{1.0, 0.0}));
  });
}

TEST_CASE("heads that do not divide the width are refused") {
  expect_error<shape_error>("4 heads do not divide a width of 6", [] {
    on_threads(2, [](const communicator& world) {
      const mesh<host> m(world, {2, 1, 1});
      const auto a = distribute(m, row_1d.sparse, shape, std::vector<triplet<double>>{});
      const edge_products products(a, row_1d.dense, blocking::even(6, m.shape(), nesting::cols), 4);
    });
  });
}

}  // namespace test_sddmm
