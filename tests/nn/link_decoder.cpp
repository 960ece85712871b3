// SPDX-License-Identifier: Apache-2.0
// Scores of pairs and their gradients: against formulas and finite differences, the same under every policy.
#include "partita/nn/link_decoder.hpp"

#include <map>

#include "partita/algebra/pair_loss.hpp"
#include "support/edge_matrices.hpp"

namespace test_link_decoder {

using namespace test_support;
using nn::link_decoding;

constexpr global_index n = 19, k = 5;
using parameter_set = nn::parameters<double, host>;

std::vector<triplet<double>> signed_pairs() {
  std::vector<triplet<double>> pairs = sparse_entries({n, n}, 4);
  for (auto& e : pairs) e.value = (e.row + e.col) % 3 == 0 ? 1 : (e.row + 2 * e.col) % 5 == 0 ? -2 : -1;
  return pairs;
}

/// The score of rows a and b, from the parameters in the order of the set.
double score_of(link_decoding how, const double* a, const double* b, const std::vector<double>& w) {
  double s = 0;
  for (global_index j = 0; how != link_decoding::mlp && j < k; ++j)
    s += a[j] * b[j] * (how == link_decoding::dot ? 1 : w[std::size_t(j)]);
  if (how != link_decoding::mlp) return s;
  const double *w1 = w.data(), *b1 = w1 + k * k, *w2 = b1 + k, *b2 = w2 + k;
  for (global_index i = 0; i < k; ++i) {
    double z = b1[i];
    for (global_index j = 0; j < k; ++j) z += a[j] * b[j] * w1[j * k + i];
    s += std::max(z, 0.0) * w2[i];
  }
  return s + *b2;
}

double loss_of(link_decoding how, const std::vector<double>& h, const std::vector<double>& w) {
  double total = 0, weight = 0;
  for (const auto& e : signed_pairs()) {
    const double s = score_of(how, &h[std::size_t(e.row * k)], &h[std::size_t(e.col * k)], w);
    total += std::abs(e.value) * algebra::logistic_pair_loss{}(e.value > 0 ? s : -s);
    weight += std::abs(e.value);
  }
  return total / weight;
}

std::vector<double> slopes(std::vector<double> x,
                           const std::function<double(const std::vector<double>&)>& f) {
  std::vector<double> found;
  for (double& entry : x) {
    const double before = entry, step = 1e-5;
    entry = before + step;
    const double above = f(x);
    entry = before - step;
    found.push_back((above - f(x)) / (2 * step));
    entry = before;
  }
  return found;
}

/// What a forward and a backward pass give, on every rank.
struct pass_results {
  double loss = 0;
  std::vector<double> dh, dw;
};

pass_results run(const host_mesh& m, const policy& p, link_decoding how) {
  parameter_set set(m);
  nn::link_decoder<double, host> decoder(how, k, set, 3);
  transform_indexed(set.values(), set.values(), [](auto, auto j, double x) { return x + element(j, 2, 9); });
  const auto h = generate<vertex_rows, double>(m, {n, k}, field(1));
  const auto pairs = distribute(m, p, {n, n}, share(signed_pairs(), m), symmetry::one_way);
  decoder.set_pairs(pairs, h);
  const algebra::pair_signs<double, host> signs(pairs);
  host_edges gradient(pairs, 1);
  dense<double, vertex_rows, host> dh(m, {n, k});
  m.ledger().clear();
  const auto& scores = decoder.forward(h);
  const traffic forward = heard(m);
  const double loss = algebra::pair_loss(scores, signs, gradient, algebra::logistic_pair_loss{});
  const traffic before = heard(m);
  decoder.backward(gradient, dh);
  CHECK(heard(m).words - before.words + forward.words == decoder.predicted().words);
  decoder.give_gradients();
  const auto w = collect(set.values()), rows = collect(h);
  CHECK(largest_error(scores, [&](auto v, auto u, auto) {
          return score_of(how, &rows[std::size_t(v * k)], &rows[std::size_t(u * k)], w);
        }) < 1e-14);
  CHECK(loss == doctest::Approx(loss_of(how, rows, w)).epsilon(1e-13));
  return {loss, collect(dh), collect(set.gradients())};
}

TEST_CASE("scores and gradients under every policy") {
  for (const auto how : {link_decoding::dot, link_decoding::distmult, link_decoding::mlp}) {
    pass_results first;
    with_mesh({1, 1, 1}, [&](const host_mesh& m) {
      first = run(m, row_1d, how);
      const auto h = whole<double>({n, k}, field(1));
      parameter_set set(m);
      nn::link_decoder<double, host> decoder(how, k, set, 3);
      std::vector<double> w = collect(set.values());
      for (std::size_t j = 0; j < w.size(); ++j) w[j] += element(global_index(j), 2, 9);
      CHECK(largest_difference(first.dh, slopes(h, [&](const auto& x) { return loss_of(how, x, w); })) <
            1e-9);
      CHECK(largest_difference(first.dw, slopes(w, [&](const auto& x) { return loss_of(how, h, x); })) <
            1e-9);
    });
    for_each_usual_mesh(std::array{2, 3, 6, 9}, [&](const policy& p, mesh_shape shape) {
      with_mesh(shape, [&](const host_mesh& m) {
        const pass_results here = run(m, p, how);
        CHECK(std::abs(here.loss - first.loss) < 1e-12);
        CHECK(largest_difference(here.dh, first.dh) < 1e-12);
        CHECK(largest_difference(here.dw, first.dw) < 1e-12);
      });
    });
  }
}

TEST_CASE("scores of given rows, and of all rows with some") {
  for (const auto how : {link_decoding::dot, link_decoding::distmult, link_decoding::mlp})
    with_mesh({2, 1, 1}, [&](const host_mesh& m) {
      parameter_set set(m);
      const nn::link_decoder<double, host> decoder(how, k, set, 3);
      transform_indexed(set.values(), set.values(),
                        [](auto, auto j, double x) { return x + element(j, 2, 9); });
      const auto w = collect(set.values());
      const auto h = generate<vertex_rows, double>(m, {n, k}, field(1)),
                 products = generate<vertex_rows, double>(
                     m, {n, k}, [](auto i, auto j) { return element(i, j, 1) * element(i, j, 2); });
      const global_index c = decoder.rows_at_once(4);
      const auto rows = generate<replicated, double>(m, {c, k}, field(2));
      dense<double, vertex_rows, host> of_rows(m, {n, 1}), of_all(m, {n, c});
      decoder.score_rows(products, of_rows);
      decoder.score_all(h, rows, of_all);
      const auto a = whole<double>({n, k}, field(1)), b = whole<double>({n, k}, field(2));
      const auto expected = [&](auto v, auto i) {
        return score_of(how, &a[std::size_t(v * k)], &b[std::size_t(i * k)], w);
      };
      check_equals(of_all, expected, 1e-14, "all rows");
      check_equals(
          of_rows, [&](auto i, auto) { return expected(i, i); }, 1e-14, "given rows");
    });
}

TEST_CASE("a decoder without pairs") {
  expect_error<error>({1, 1, 1}, "before it was given pairs", [](const host_mesh& m) {
    parameter_set set(m);
    nn::link_decoder<double, host> decoder(link_decoding::dot, k, set, 0);
    decoder.forward(generate<vertex_rows, double>(m, {n, k}, field(1)));
  });
}

}  // namespace test_link_decoder
