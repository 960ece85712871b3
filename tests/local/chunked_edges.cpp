// SPDX-License-Identifier: Apache-2.0
// Kernels on the entries of patterns, in chunks: as on near memory, with the bytes of the closed form.
#include "partita/local/chunked_edges.hpp"

#include <doctest/doctest.h>
#include <set>

#include "support/far_place.hpp"
#include "support/ranks.hpp"

namespace test_chunked_edges {

using namespace test_support;
using local::adds, local::consumes_entries, local::far_chunk, local::entry_passes, local::gathers,
    local::reads;
using local::reads_entries, local::updates, local::updates_entries, local::writes, local::writes_entries;

/// Which operands are far.
struct far_parts {
  bool structure = true, entries = true, rows = true, columns = true;
  explicit far_parts(unsigned bits)
      : structure((bits & 1) != 0),
        entries((bits & 2) != 0),
        rows((bits & 4) != 0),
        columns((bits & 8) != 0) {}
};

struct far_case {
  unsigned far;
  std::size_t window;
  local_index heads;
  int threads;
};

template <class T>
std::vector<T> some(std::size_t size, std::uint64_t seed) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<T>(base::random_uniform(seed, static_cast<std::int64_t>(i), 3) - 0.5);
  return values;
}

/// A pattern, and operands of its kernels on near and on far memory.
struct arena {
  arena(const sparse_block<double>& graph, const far_case& given)
      : of(given),
        is(given.far),
        place(given.window, 1, given.threads),
        graph(graph),
        a(graph.pattern()),
        far_a(place.put(graph, is.structure, false)) {
    far_a.values = nullptr;
  }
  block<double> rows(local_index width, std::uint64_t seed) const { return {a.rows, width, seed}; }
  block<double> columns(local_index width, std::uint64_t seed) const { return {a.cols, width, seed}; }
  std::vector<double> entries(std::uint64_t seed) const {
    return some<double>(static_cast<std::size_t>(graph.end()) * static_cast<std::size_t>(of.heads), seed);
  }
  matrix_view<double> row(const block<double>& b) { return place.put(b, is.rows); }
  matrix_view<double> column(const block<double>& b) { return place.put(b, is.columns); }
  double* entry(const std::vector<double>& v) { return place.put(v, is.entries); }
  std::vector<double> values(const double* v) const {
    return {v, v + static_cast<std::size_t>(graph.end()) * static_cast<std::size_t>(of.heads)};
  }

  /// Runs it and compares what passes with the closed form.
  void run(const std::function<void()>& body, const memory::far_traffic& expected) {
    const memory::far_traffic before = far_of(place.q)->traffic();
    body();
    const memory::far_traffic t = far_of(place.q)->traffic() - before;
    CHECK(t.read == expected.read);
    CHECK(t.written == expected.written);
    CHECK(t.rows_read == expected.rows_read);
    CHECK(t.operand_rows == expected.operand_rows);
    CHECK(t.chunks >= expected.chunks);
    chunks = expected.chunks;
  }
  /// Rows in one chunk have the same bits, others nearly the same values.
  void same_rows(matrix_view<const double> found, matrix_view<const double> expected,
                 std::span<const far_chunk> cut) const {
    CHECK(distance(values_of<double>(found), values_of<double>(expected)) < 1e-13);
    for (const far_chunk& c : cut)
      if (!c.splits_first_row && !c.splits_last_row)
        CHECK(same_bits(values_of<double>(found.block(c.first_row, 0, c.rows, found.cols)),
                        values_of<double>(expected.block(c.first_row, 0, c.rows, found.cols))));
  }

  far_case of;
  far_parts is;
  far_place place;
  const sparse_block<double>& graph;
  csr_view<double> a, far_a;
  entry_passes<host> passes;
  std::uint64_t chunks = 0;  ///< of the last run
};

void check_log_sum(arena& on) {
  const local_index heads = on.of.heads;
  block<double> source = on.columns(heads, 1), target = on.rows(heads, 2), sums = on.rows(heads, 3);
  edge_log_sum(on.place.near, on.a, heads, 0.2, source.view(), target.view(), sums.view());
  const matrix_view<const double> s = on.column(source), t = on.row(target);
  const matrix_view<double> out = on.row(on.rows(heads, 4));
  const auto pass = [&](auto f) { return f(gathers(s), reads(t), writes(out)); };
  on.run([&] { local::chunked::edge_log_sum(on.place.q, on.passes, 0, on.far_a, heads, 0.2, s, t, out); },
         pass([&](auto... x) { return on.passes.predicted(on.place.q, 0, on.far_a, {}, x...); }));
  on.same_rows(out, sums.view(),
               pass([&](auto... x) { return on.passes.chunks(on.place.q, 0, on.far_a, {}, x...); }));
}

void check_multiply(arena& on, double beta) {
  const local_index heads = on.of.heads, width = 3;
  const local::head_slice slice{heads, width, 0};
  block<double> x = on.columns(heads * width, 1), y = on.rows(heads * width, 2);
  const std::vector<double> values = on.entries(3);
  const matrix_view<const double> of_x = on.column(x);
  const matrix_view<double> of_y = on.row(y);
  const double* const of_values = on.entry(values);
  edge_multiply(on.place.near, on.a, slice, values.data(), x.view(), beta, y.view());
  const auto pass = [&](auto f) {
    return f(reads_entries(of_values, heads), gathers(of_x), beta == 0 ? writes(of_y) : updates(of_y));
  };
  on.run(
      [&] {
        local::chunked::edge_multiply(on.place.q, on.passes, 0, on.far_a, slice, of_values, of_x, beta, of_y);
      },
      pass([&](auto... o) { return on.passes.predicted(on.place.q, 0, on.far_a, {}, o...); }));
  on.same_rows(of_y, y.view(),
               pass([&](auto... o) { return on.passes.chunks(on.place.q, 0, on.far_a, {}, o...); }));
}

void check_dot(arena& on, double beta) {
  const local_index heads = on.of.heads, width = 3;
  const local::head_slice slice{heads, width, 0};
  const block<double> x = on.columns(heads * width, 1), y = on.rows(heads * width, 2);
  std::vector<double> values = on.entries(3);
  const matrix_view<const double> of_x = on.column(x), of_y = on.row(y);
  double* const of_values = on.entry(values);
  edge_dot(on.place.near, on.a, slice, y.view(), x.view(), beta, values.data());
  const auto to = beta == 0 ? writes_entries(of_values, heads) : updates_entries(of_values, heads);
  on.run(
      [&] {
        local::chunked::edge_dot(on.place.q, on.passes, 0, on.far_a, slice, of_y, of_x, beta, of_values);
      },
      on.passes.predicted(on.place.q, 0, on.far_a, {}, reads(of_y), gathers(of_x), to));
  CHECK(same_bits(on.values(of_values), values));
}

void check_multiply_transposed(arena& on, double beta) {
  const local_index heads = on.of.heads, width = 3;
  const local::head_slice slice{heads, width, 0};
  block<double> x = on.columns(heads * width, 1), y = on.rows(heads * width, 2);
  const std::vector<double> values = on.entries(3);
  const matrix_view<double> of_x = on.column(x);
  const matrix_view<const double> of_y = on.row(y);
  const double* const of_values = on.entry(values);
  const auto inverse = inverse_of(on.place.near, on.a);
  edge_multiply_transposed(on.place.near, inverse, slice, values.data(), y.view(), beta, x.view());
  const auto pass = [&](auto f) { return f(reads_entries(of_values, heads), reads(of_y), adds(of_x, beta)); };
  const auto cut =
      pass([&](auto... o) { return on.passes.chunks(on.place.q, 0, on.far_a, {.inverse = true}, o...); });
  const memory::far_traffic moved =
      pass([&](auto... o) { return on.passes.predicted(on.place.q, 0, on.far_a, {.inverse = true}, o...); });
  if (!cut.empty()) {  // the transpose: each row of x is written once
    const std::uint64_t bytes = sizeof(double), of_row = static_cast<std::uint64_t>(heads * width) * bytes,
                        result = on.is.columns ? static_cast<std::uint64_t>(on.a.cols) * of_row : 0;
    std::uint64_t indices = 0, loaded = 0, entries = 0;
    const auto padded = [](local_index n) { return (static_cast<std::uint64_t>(n) + 3) / 4 * 4; };
    for (const far_chunk& c : cut) {
      indices += padded(c.rows + 1) + 2 * padded(c.loaded) + 3 * padded(c.entries);
      loaded += static_cast<std::uint64_t>(c.loaded);
      entries += static_cast<std::uint64_t>(c.entries);
    }
    CHECK(entries == static_cast<std::uint64_t>(on.graph.end() - on.graph.offsets[0]));
    CHECK(moved.written == result);
    CHECK(moved.read == sizeof(local_index) * indices + (beta != 0 ? result : 0) +
                            (on.is.rows ? loaded * of_row : 0) +
                            (on.is.entries ? entries * static_cast<std::uint64_t>(heads) * bytes : 0));
  }
  on.run(
      [&] {
        local::chunked::edge_multiply_transposed(on.place.q, on.passes, 0, on.far_a, slice, of_values, of_y,
                                                 beta, of_x);
      },
      moved);
  on.same_rows(of_x, x.view(), cut);
}

void check_softmax_gradient(arena& on, double beta) {
  const local_index heads = on.of.heads;
  const block<double> source = on.columns(heads, 1), target = on.rows(heads, 2), dots = on.rows(heads, 3);
  block<double> sums = on.rows(heads, 4), dsource = on.columns(heads, 5), dtarget = on.rows(heads, 6);
  std::vector<double> d = on.entries(7);
  edge_log_sum(on.place.near, on.a, heads, 0.2, source.view(), target.view(), sums.view());
  const matrix_view<const double> s = on.column(source), t = on.row(target), l = on.row(sums),
                                  r = on.row(dots);
  const matrix_view<double> ds = on.column(dsource), dt = on.row(dtarget);
  double* const g = on.entry(d);
  const auto inverse = inverse_of(on.place.near, on.a);
  for (local_index i = 0; i < dtarget.rows; ++i)
    for (local_index h = 0; h < heads; ++h) dtarget.view()(i, h) = 0;
  edge_softmax_gradient(on.place.near, on.a, inverse, heads, 0.2, source.view(), target.view(), sums.view(),
                        dots.view(), beta, d.data(), dsource.view(), dtarget.view());
  const auto pass = [&](auto f) {
    return f(gathers(s), adds(ds, beta), reads(t), reads(l), reads(r), writes(dt),
             consumes_entries(g, heads));
  };
  on.run(
      [&] {
        local::chunked::edge_softmax_gradient(on.place.q, on.passes, 0, on.far_a, heads, 0.2, s, t, l, r,
                                              beta, g, ds, dt);
      },
      pass([&](auto... o) { return on.passes.predicted(on.place.q, 0, on.far_a, {.inverse = true}, o...); }));
  CHECK(distance(values_of<double>(ds), values_of<double>(dsource.view())) < 1e-13);
  on.same_rows(dt, dtarget.view(), pass([&](auto... o) {
                 return on.passes.chunks(on.place.q, 0, on.far_a, {.inverse = true}, o...);
               }));
}

void check_row_fold(arena& on) {
  const local_index heads = on.of.heads;
  block<double> out = on.rows(heads, 1);
  const std::vector<double> values = on.entries(2);
  const matrix_view<double> of_out = on.row(out);
  const double* const of_values = on.entry(values);
  edge_row_fold(on.place.near, on.a, heads, std::plus<>(), values.data(), out.view());
  on.run(
      [&] {
        local::chunked::edge_row_fold(on.place.q, on.passes, 0, on.far_a, heads, std::plus<>(), of_values,
                                      of_out);
      },
      on.passes.predicted(on.place.q, 0, on.far_a, {}, reads_entries(of_values, heads), updates(of_out)));
  CHECK(same_bits(values_of<double>(of_out), values_of<double>(out.view())));
}

/// The transpose of a pattern, in which no entry is twice.
sparse_block<double> transposed_once(const csr_view<double>& a) {
  std::set<std::pair<local_index, local_index>> entries;
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) entries.emplace(a.columns[e], i);
  std::vector<local_index> lengths(static_cast<std::size_t>(a.cols));
  for (const auto& [column, row] : entries) ++lengths[static_cast<std::size_t>(column)];
  sparse_block<double> turned(lengths, a.rows);
  auto to =
      turned.columns.begin() + static_cast<std::ptrdiff_t>(turned.columns_lead) + turned.offsets.front();
  for (const auto& [column, row] : entries) *to++ = row;
  return turned;
}

void check_max(arena& on) {
  const local_index width = on.of.heads;
  block<double> x = on.columns(width, 1), y = on.rows(width, 2), dx = on.columns(width, 3);
  const block<double> dy = on.rows(width, 4);
  x.view()(1, 0) = std::numeric_limits<double>::quiet_NaN();
  block<local_index> arg(on.a.rows, width, 0), zero(on.a.rows, width, 0);
  max_aggregate(on.place.near, on.a, x.view(), y.view(), arg.view());
  const matrix_view<const double> of_x = on.column(x), of_dy = on.row(dy);
  const matrix_view<double> of_y = on.row(on.rows(width, 5)), of_dx = on.column(dx);
  const matrix_view<local_index> of_arg = on.place.put(zero, on.is.rows);
  on.run([&] { local::chunked::max_aggregate(on.place.q, on.passes, 0, on.far_a, of_x, of_y, of_arg); },
         on.passes.predicted(on.place.q, 0, on.far_a, {.global_columns = true}, gathers(of_x), writes(of_y),
                             writes(of_arg)));
  std::vector<local_index> columns = values_of<local_index>(arg.view());
  for (local_index& e : columns)
    if (e >= 0) e = on.a.columns[e];
  CHECK(same_bits(values_of<local_index>(of_arg), columns));
  CHECK(same_bits(values_of<double>(of_y), values_of<double>(y.view())));
  for (local_index i = 0; i < dx.rows; ++i)
    for (local_index j = 0; j < width; ++j) dx.view()(i, j) = 0;
  max_scatter(on.place.near, on.a, arg.view(), dy.view(), dx.view());
  const sparse_block<double> turned = transposed_once(on.a);
  csr_view<double> t = on.place.put(turned, on.is.structure, false);
  t.values = nullptr;
  const matrix_view<const local_index> winners = of_arg;
  const auto pass = [&](auto f) { return f(gathers(of_dy), gathers(winners), writes(of_dx)); };
  const memory::far_traffic moved =
      pass([&](auto... o) { return on.passes.predicted(on.place.q, 1, t, {}, o...); });
  CHECK(moved.written == (on.is.columns ? values_of<double>(dx.view()).size() * sizeof(double) : 0));
  on.run([&] { local::chunked::max_gather(on.place.q, on.passes, 1, t, 0, winners, of_dy, of_dx); }, moved);
  on.same_rows(of_dx, dx.view(),
               pass([&](auto... o) { return on.passes.chunks(on.place.q, 1, t, {}, o...); }));
}

void check_all(const sparse_block<double>& graph, const far_case& of) {
  INFO("of.far ", of.far, ", of.window ", of.window, ", of.heads ", of.heads);
  arena on(graph, of);
  check_log_sum(on);
  check_row_fold(on);
  check_max(on);
  for (const double beta : {0.0, 1.0, -0.5}) {
    check_multiply(on, beta);
    check_dot(on, beta);
    check_multiply_transposed(on, beta);
    if (beta != -0.5) check_softmax_gradient(on, beta);
  }
}

TEST_CASE("kernels on entries: whichever operands are far, as on near memory") {
  const auto graph = directed<double>(201, 150);
  for (unsigned far = 0; far < 16; ++far) check_all(graph, {far, 24576, 2, far % 2 == 0 ? 1 : 3});
}

TEST_CASE("kernels on entries: in few chunks and in many, with 1 to 8 heads") {
  const auto graph = directed<double>(601, 350);
  for (local_index heads = 1; heads <= 8; ++heads)
    for (const std::size_t window : {std::size_t{1} << 22, std::size_t{1} << 16, std::size_t{1} << 15})
      check_all(graph, {15, window, heads, 1});
}

TEST_CASE("kernels on entries: rows longer than a window") {
  const sparse_block<double> graph({3, 400, 0, 300, 2, 1, 900}, 300);
  for (unsigned far = 1; far < 16; ++far) check_all(graph, {far, 12288, 2, 1});
  arena on(graph, {15, 12288, 2, 1});
  check_dot(on, 0);
  CHECK(on.chunks > 7);  // there are seven rows
}

TEST_CASE("kernels on entries: columns that every chunk needs") {
  const sparse_block<double> graph(std::vector<local_index>(200, 25), 8);
  for (unsigned far = 1; far < 16; ++far) check_all(graph, {far, 24576, 2, 1});
}

TEST_CASE("kernels on entries: patterns without entries, rows or columns") {
  for (const auto& graph :
       {sparse_block<double>(std::vector<local_index>(64, 0), 5), sparse_block<double>(0, 5)}) {
    arena on(graph, {15, 16384, 2, 1});
    check_log_sum(on);
    check_multiply(on, 0.0);
    check_dot(on, 0.0);
    check_multiply_transposed(on, 0.5);
    check_softmax_gradient(on, 0.0);
  }
}

}  // namespace test_chunked_edges
