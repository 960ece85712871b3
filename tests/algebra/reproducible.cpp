// SPDX-License-Identifier: Apache-2.0
// What a verb may add up on a reproducible mesh: verbs that know nothing of it are refused.
#include "partita/algebra/reproducible.hpp"

#include "partita/algebra/edge_verbs.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/algebra/row_chunks.hpp"
#include "partita/algebra/vectors.hpp"
#include "support/spmm_problems.hpp"
#include "support/summing.hpp"

namespace test_reproducible_queue {

using namespace test_support;

using matrix = dense<double, vertex_rows, host>;

/// Verbs as a user might write them.
double mean_square(const matrix& x) {
  const auto& m = x.mesh();
  double total[] = {local::chunked::dot(m.queue(), x.local(), x.local())};
  m.control(x.layout().used()).all_reduce(total);
  return total[0] / static_cast<double>(x.shape().rows);
}
void add_up(const matrix& x, dense<double, replicated, host>& sums) {
  fill(sums, 0.0);
  for (local_index i = 0; i < x.local().rows; ++i)
    for (local_index j = 0; j < x.local().cols; ++j) sums.local()(0, j) += x.local()(i, j);
  x.mesh().along(x.layout().used()).all_reduce(sums.values());
}
void neighbours(const partita::sparse<double, dynamic_layout, host>& a, const matrix& x, matrix& y) {
  for (const auto& part : a.local()->parts(0))
    spmm(x.mesh().queue(), part.entries, x.local(), 0.0, part.rows_of(y.local()));
}
/// One that no arrangement can change.
void doubled(const matrix& x, matrix& y) {
  transform(x.mesh().queue(), base::scaled<double>{2}, x.local(), y.local());
}

TEST_CASE("a verb that does not know of reproducible meshes is refused where it adds up") {
  const char* const what = "is not available on a reproducible mesh: its sums depend on the mesh";
  const auto try_all = [&](const communicator& world, summation how) {
    const mesh<host> m(world, {world.size(), 1, 1}, summing(how));
    const auto x = generate<vertex_rows, double>(m, {12, 3}, field(1));
    matrix y(m, {12, 3});
    dense<double, replicated, host> sums(m, matrix_shape{1, 3});
    const auto a = distribute(m, row_1d, {12, 12}, share(sparse_entries({12, 12}), m));
    doubled(x, y);
    const bool fast = how == summation::fast;
    const auto expect = [&](const auto& verb) {
      if (fast)
        verb();
      else
        expect_error<error>(what, verb);
    };
    expect([&] { mean_square(x); });
    if (world.size() > 1) expect([&] { add_up(x, sums); });
    if (world.size() == 1) expect([&] { neighbours(a, x, y); });
  };
  for (const summation how : {summation::fast, summation::reproducible}) {
    try_all(self::world(), how);
    on_threads(3, [&](const communicator& world) { try_all(world, how); });
  }
}

TEST_CASE("a norm is refused by its name") {
  const mesh<host> m(self::world(), {}, summing(summation::reproducible));
  const matrix x(m, {4, 3});
  dense<double, replicated, host> norms(m, {1, 3});
  expect_error<error>("norm is not available on a reproducible mesh", [&] { (void)norm(x); });
  expect_error<error>("norm is not available on a reproducible mesh", [&] { norm(x, norms); });
}

TEST_CASE(
    "kernels that add up are refused on such a queue, those of single elements and whole rows are not") {
  const auto q = summing(summation::reproducible);
  std::vector<double> x(6, 1), y(6), z(4);
  const matrix_view<double> a{x.data(), 2, 3, 3}, b{y.data(), 2, 3, 3}, c{z.data(), 2, 2, 2};
  const matrix_view<const double> in(a);
  const local_index offsets[] = {0, 1, 2}, columns[] = {1, 0};
  const local::csr_view<double> pattern{2, 2, offsets, columns, x.data(), 2};
  const auto refused = [](const char* name, const auto& kernel) {
    expect_error<error>(name + std::string(" is not available on a reproducible mesh"), kernel);
  };
  refused("sum", [&] { sum(q, a); });
  refused("dot", [&] { dot(q, a, a); });
  refused("column_sums", [&] { column_sums(q, in, y.data()); });
  refused("column_dots", [&] { column_dots(q, in, in, y.data()); });
  refused("gemm", [&] { gemm(q, false, true, 1.0, in, in, 0.0, c); });
  refused("gemm", [&] { gemm_bias_relu(q, in, in, nullptr, false, 0.0, c); });
  refused("cross_entropy", [&] { cross_entropy(q, in, columns, 1.0, b); });
  refused("spmm", [&] { spmm(q, pattern, in, 0.0, b); });
  refused("spmm_fused", [&] { spmm_fused(q, pattern, in, {}, b); });
  refused("spmm_transposed", [&] { spmm_transposed(q, pattern, in, 1.0, 0.0, b); });
  refused("scatter_add_distinct_rows",
          [&] { scatter_add_distinct_rows(q, x.data(), std::span<const local_index>(columns), b); });
  refused("a product with edge values", [&] { edge_multiply(q, pattern, {1, 3, 0}, x.data(), in, 0.0, b); });
  refused("edge_dot", [&] { edge_dot(q, pattern, {1, 3, 0}, in, in, 0.0, y.data()); });
  row_sums(q, in, y.data());
  CHECK(y[0] == 3);
  copy(q, in, b);
  CHECK(y == x);
}

TEST_CASE("of the library's verbs, too, those that have no such form are refused by what they call") {
  const mesh<host> m(self::world(), {1, 1, 1}, summing(summation::reproducible));
  const auto x = generate<double>(m, row_1d.dense, {12, 4}, field(1));
  dense<double, dynamic_layout, host> y(m, row_1d.dense, {12, 4});
  const auto a = distribute(m, row_1d, {12, 12}, share(sparse_entries({12, 12}), m));
  const edge_matrix<double, host> e(a, 2);
  const auto refused = [&](const auto& verb) {
    expect_error<error>("is not available on a reproducible mesh", verb);
  };
  refused([&] { (void)dot(e, e); });
  refused([&] { inner(x, x); });
  const std::vector<global_index> ids{3, 1};
  refused([&] { scatter_add_rows(gather_rows(x, ids), ids, y); });
  CHECK(!algebra::row_chunks<double, host>::fits(a));
}

TEST_CASE("a queue and the reproducible one that was made of it share memory and later extensions") {
  struct mark {
    int value;
  };
  const device_queue<host> q(2);
  const device_queue<host> r = reproducible(q);
  CHECK(r.threads() == 2);
  CHECK(r.meter() == q.meter());
  r.extend(std::make_shared<mark>(mark{3}));
  REQUIRE(q.find<mark>() != nullptr);
  CHECK(q.find<mark>()->value == 3);
  CHECK(memory::reproducible_sums_of(q) == nullptr);
  REQUIRE(memory::reproducible_sums_of(r) != nullptr);
  CHECK(memory::reproducible_sums_of(memory::reproducible_sums_of(r)->beneath) == nullptr);
}

}  // namespace test_reproducible_queue
