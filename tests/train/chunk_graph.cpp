// SPDX-License-Identifier: Apache-2.0
// Products with a graph chunk by chunk, under every policy, against loops over global indices.
#include "partita/train/chunk_graph.hpp"

#include <set>

#include "partita/compiled/host.hpp"
#include "support/matrices.hpp"

namespace test_chunk_graph {

using namespace test_support;

using graph = nn::chunk_graph<double, host>;
using matrix = graph::matrix;

constexpr global_index width = 5;
constexpr int chunks = 4;  ///< of which the third is empty

/// A with rows and columns in the order of the chunks.
struct problem {
  mesh_shape mesh;
  std::shared_ptr<const nn::chunked_vertices> vertices;
  std::vector<triplet<double>> entries;
  std::vector<std::size_t> order = {3, 0, 2, 1};  ///< in which the chunks run forward

  problem(global_index n, mesh_shape m) : mesh(m), entries(sparse_entries({n, n}, 4)) {
    io::dataset d;
    d.name = "a graph";
    d.vertices = n;
    std::vector<int> chunk_of;
    for (global_index v = 0; v < n; ++v) {
      const auto c = static_cast<int>(base::random_bits(8, v, 1) % chunks);
      chunk_of.push_back(c == 2 ? 3 : c);
    }
    vertices = std::make_shared<nn::chunked_vertices>(std::move(d), blocking::even(n, m, nesting::rows),
                                                      chunk_of, chunks);
  }

  global_index n() const { return vertices->rows().size(); }
  std::size_t chunk(global_index row) const { return vertices->place(row).first; }
  int owner(global_index row) const {
    return static_cast<int>(vertices->rows().owner(vertex_rows.rows, row));
  }
  /// When the chunk of a row runs.
  std::size_t turn(global_index row) const {
    return static_cast<std::size_t>(std::ranges::find(order, chunk(row)) - order.begin());
  }

  graph built(const host_mesh& m, const policy& p) const {
    std::vector<global_index> sizes;
    for (int r = 0; r < m.size(); ++r)
      sizes.push_back(vertices->rows().block(vertex_rows.rows, mesh.at(r)).size());
    const host_mesh by_rows(m.world(), {m.size(), 1, 1});
    const blocking rows = blocking::given(sizes, by_rows.shape(), nesting::rows);
    const sampling::graph<double> a(distribute(by_rows, row_1d.sparse, rows, rows, share(entries, m),
                                               symmetry::one_way,
                                               row_1d.dense));  // (n, n)
    return graph(m, vertices, a, p);
  }
  matrix rows(const host_mesh& m, std::uint64_t number) const {
    matrix x(m, vertices->rows(), blocking::even(width, m.shape(), nesting::cols));  // (n, width)
    transform_indexed(x, x, [&](global_index i, global_index j, double) { return element(i, j, number); });
    return x;
  }

  /// Y: each chunk's rows of A times X, whose rows are new in chunks up to that one and old in later ones.
  std::vector<double> product() const {
    std::vector<double> y(static_cast<std::size_t>(n() * width), 0);
    for (const auto& e : entries)
      for (global_index j = 0; j < width; ++j)
        y[static_cast<std::size_t>(e.row * width + j)] +=
            e.value * element(e.col, j, turn(e.col) <= turn(e.row) ? 2 : 1);
    return y;
  }
  /// dX: sums over the rows of A in the chunk itself, and in later ones times `factor`; or, `late`, over
  /// those in earlier ones, which run backward afterwards.
  std::vector<double> sums(double factor, bool late) const {
    std::vector<double> x(static_cast<std::size_t>(n() * width), 0);
    for (const auto& e : entries) {
      const std::size_t from = turn(e.row), to = turn(e.col);
      if ((from < to) != late) continue;
      for (global_index j = 0; j < width; ++j)
        x[static_cast<std::size_t>(e.col * width + j)] +=
            (from > to ? factor : 1) * e.value * element(e.row, j, 3);
    }
    return x;
  }

  /// Rows of others that rank r's rows refer to, of one chunk.
  std::set<global_index> copied(int r, std::size_t c) const {
    std::set<global_index> found;
    for (const auto& e : entries)
      if (owner(e.row) == r && owner(e.col) != r && chunk(e.col) == c) found.insert(e.col);
    return found;
  }
  /// What rank r receives for these copies, and for the copies of its rows.
  traffic of_copies(int r, std::size_t c) const {
    std::set<int> owners;
    const std::set<global_index> rows = copied(r, c);
    for (const global_index row : rows) owners.insert(owner(row));
    return {std::ssize(rows) * width, std::ssize(owners)};
  }
  traffic of_copied(int r, std::size_t c) const {
    traffic t;
    for (int q = 0; q < mesh.size(); ++q) {
      global_index rows = 0;
      for (const global_index row : copied(q, c)) rows += owner(row) == r ? 1 : 0;
      if (rows > 0) t += {rows * width, 1};
    }
    return t;
  }
};

/// Whether a rank has whole rows of A, and copies of the rows of X that it needs.
bool has_copies(const policy& p, mesh_shape shape) {
  return shape.size(p.sparse.rows) == shape.size() && shape.size(p.dense.cols) == 1;
}

void forward(const problem& of, const host_mesh& m, const policy& p, graph& g) {
  const matrix old_rows = of.rows(m, 1), new_rows = of.rows(m, 2);  // (n, width)
  matrix y = of.rows(m, 9);                                         // (n, width)
  matrix table = g.table(width);                                    // (table rows, width)
  for (std::size_t c = 0; c < chunks; ++c) g.write(c, g.part(c, old_rows), table);
  for (const std::size_t c : of.order) {
    const traffic predicted = g.predicted(c, width);
    m.ledger().clear();
    matrix part = g.part(c, y);
    g.write(c, g.part(c, new_rows), table);
    g.multiply(c, table, part);
    same(heard(m), predicted, "write and multiply");
    if (has_copies(p, m.shape())) same(predicted, of.of_copies(m.rank(), c), "copied rows");
  }
  check_equals(y, of.product(), 1e-13, "A_c X");
}

void backward(const problem& of, const host_mesh& m, const policy& p, graph& g, double factor) {
  const matrix dy = of.rows(m, 3);                  // (n, width)
  matrix dx = of.rows(m, 9), late = of.rows(m, 9);  // (n, width)
  matrix sums = g.table(width);                     // (table rows, width)
  for (std::size_t i = chunks; i-- > 0;) {
    const std::size_t c = of.order[i];
    const traffic predicted = g.predicted_transposed(c, width);
    m.ledger().clear();
    matrix part = g.part(c, dx);
    if (factor != 1) g.scale(c, factor, sums);
    g.multiply_transposed(c, g.part(c, dy), sums);
    g.read_sums(c, sums, part);
    same(heard(m), predicted, "multiply_transposed and read_sums");
    if (has_copies(p, m.shape())) same(predicted, of.of_copied(m.rank(), c), "sums of copied rows");
  }
  check_equals(dx, of.sums(factor, false), 1e-13, "dX_c");
  for (std::size_t c = 0; c < chunks; ++c) {
    matrix part = g.part(c, late);
    g.read_sums(c, sums, part);
  }
  check_equals(late, of.sums(factor, true), 1e-13, "what came after a chunk was read");
}

TEST_CASE("products and sums chunk by chunk are those of loops over entries, with the words predicted") {
  for_each_usual_mesh(std::array{1, 2, 4, 6, 9, 12}, [](const policy& p, mesh_shape shape) {
    for (const global_index n : {37, 7}) {
      const problem of(n, shape);
      on_mesh(shape, [&](const host_mesh& m) {
        graph g = of.built(m, p);
        INFO("p.name ", std::string(p.name), ", shape ", to_string(shape));
        global_index copies = 0;
        for (std::size_t c = 0; c < chunks; ++c) copies += std::ssize(of.copied(m.rank(), c));
        CHECK(g.copied_rows() == (has_copies(p, shape) ? copies : 0));
        forward(of, m, p, g);
        backward(of, m, p, g, 1);
        backward(of, m, p, g, 2);
      });
    }
  });
}

TEST_CASE("a part of a matrix is the rows of its chunk, also where only some are written") {
  const problem of(37, {2, 2, 1});
  on_threads(4, [&](const communicator& world) {
    const host_mesh m(world, of.mesh);
    const graph g = of.built(m, grid_2d);
    matrix x = of.rows(m, 1);  // (n, width)
    for (const std::size_t c : {0, 2, 3}) {
      matrix part = g.part(c, x);
      CHECK(part.row_blocking() == of.vertices->rows(c));
      fill(part, static_cast<double>(c));
    }
    check_equals(
        x,
        [&](global_index i, global_index j) {
          return of.chunk(i) == 1 ? element(i, j, 1) : static_cast<double>(of.chunk(i));
        },
        0, "parts");
  });
}

}  // namespace test_chunk_graph
