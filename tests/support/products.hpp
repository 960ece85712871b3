// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of dense matrices of every layout against tests/reference and their predictions.

#include "partita/algebra/gemm.hpp"
#include "reference/gemm.hpp"
#include "support/matrices.hpp"

namespace test_support {

/// m x k times k x n.
struct product_sizes {
  global_index m, n, k;
};

/// One product: op(A) and op(B), and what C is before.
struct dense_product {
  product_sizes of;
  bool ta = false, tb = false;
  double alpha = 1, beta = 0;

  matrix_shape a() const { return ta ? matrix_shape{of.k, of.m} : matrix_shape{of.m, of.k}; }
  matrix_shape b() const { return tb ? matrix_shape{of.n, of.k} : matrix_shape{of.k, of.n}; }
  matrix_shape c() const { return {of.m, of.n}; }
  /// alpha op(A) op(B) + beta C of test matrices 1, 2 and 3.
  std::vector<double> expected() const {
    const std::vector<double> left = whole(a(), field(1)), right = whole(b(), field(2));
    std::vector<double> result = whole(c(), field(3));
    partita::reference::gemm(ta, tb, alpha, view_of(left, a()), view_of(right, b()), beta,
                             matrix_view<double>{result.data(), static_cast<local_index>(of.m),
                                                 static_cast<local_index>(of.n), of.n});
    return result;
  }
};

/// Whether this rank's block of y is that of `expected`, to rounding.
inline bool holds(const host_dense<>& y, const std::vector<double>& expected) {
  const interval rows = y.row_range(), cols = y.col_range();
  std::size_t next = 0;
  for (global_index i = rows.begin; i < rows.end; ++i)
    for (global_index j = cols.begin; j < cols.end; ++j)
      if (!(std::abs(y.values()[next++] - expected[static_cast<std::size_t>(i * y.shape().cols + j)]) <
            1e-13))
        return false;
  return true;
}

/// Gives `use` op(a) and op(b).
void with_operands(const dense_product& p, const host_dense<>& a, const host_dense<>& b, auto use) {
  if (p.ta && p.tb) return use(transposed(a), transposed(b));
  if (p.ta) return use(transposed(a), b);
  if (p.tb) return use(a, transposed(b));
  use(a, b);
}

/// One plan, run once or more: values, what travels against the prediction, allocations. Adds what this rank
/// received to `received`.
inline bool multiplies(const dense_product& p, const host_dense<>& a, const host_dense<>& b, host_dense<>& c,
                       const std::vector<double>& before, const std::vector<double>& expected,
                       const gemm_options& options, int runs, global_index* received = nullptr) {
  const host_mesh& m = a.mesh();
  bool right = true;
  with_operands(p, a, b, [&](const auto& left, const auto& other) {
    gemm_plan multiply(left, other, c, options);
    std::uint64_t allocations = 0;
    for (int run = 0; run < runs; ++run) {
      std::copy(before.begin(), before.end(), c.values().begin());
      m.ledger().clear();
      multiply(p.alpha, left, other, p.beta, c);
      right = right && holds(c, expected) && heard(m) == multiply.predicted();
      if (received != nullptr) *received += heard(m).words;
      if (run == 0) allocations = m.queue().meter()->allocations();
    }
    right = right && m.queue().meter()->allocations() == allocations;
    right = right && (!options.schedule || multiply.schedule() == *options.schedule);
  });
  return right;
}

/// The block of C before the product; NaN where it must not be read.
inline std::vector<double> old_values(const host_dense<>& c, const dense_product& p) {
  std::vector<double> values(c.values().begin(), c.values().end());
  if (p.beta == 0) std::fill(values.begin(), values.end(), std::numeric_limits<double>::quiet_NaN());
  return values;
}

/// Products of different shapes, transposes and factors; matrices with fewer rows or columns than ranks too.
inline const std::array<dense_product, 6> products = {{{{13, 7, 11}},
                                                       {{5, 9, 14}, true, false},
                                                       {{2, 3, 1}, false, true, 2, 0},
                                                       {{8, 5, 10}, true, true, 1, -3},
                                                       {{1, 2, 17}, false, false, -2, 1},
                                                       {{4, 1, 2}, false, false, 0.5, 0.25}}};

/// Every assignment of the three axes to i, j, k or none.
inline std::vector<partita::partition::gemm_schedule> every_schedule() {
  std::vector<partita::partition::gemm_schedule> schedules;
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned j = 0; j < 8; ++j)
      for (unsigned k = 0; k < 8; ++k)
        if ((i & j) == 0 && (j & k) == 0 && (k & i) == 0)
          schedules.push_back({axis_set(i), axis_set(j), axis_set(k)});
  return schedules;
}

/// Every pair of layouts for A and B, with C in those for which `takes(a, b, c)` holds; the schedules, the
/// products in turn. Returns the number of elements that this rank received.
global_index every_pair(const host_mesh& m, auto takes) {
  const std::vector<layout> layouts = every_layout();
  struct matrices {
    std::vector<host_dense<>> a, b, c;
    std::vector<std::vector<double>> before;
    std::vector<double> expected;
  };
  std::vector<matrices> cases(products.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    cases[i].expected = products[i].expected();
    for (const layout l : layouts) {
      cases[i].a.push_back(generate<double>(m, l, products[i].a(), field(1)));
      cases[i].b.push_back(generate<double>(m, l, products[i].b(), field(2)));
      cases[i].c.push_back(generate<double>(m, l, products[i].c(), field(3)));
      cases[i].before.push_back(old_values(cases[i].c.back(), products[i]));
    }
  }
  const std::vector<partita::partition::gemm_schedule> schedules = every_schedule();
  std::size_t next = 0;
  global_index received = 0;
  for (std::size_t a = 0; a < layouts.size(); ++a)
    for (std::size_t b = 0; b < layouts.size(); ++b)
      for (std::size_t c = 0; c < layouts.size(); ++c) {
        if (!takes(a, b, c)) continue;
        const std::size_t i = next % products.size();
        const gemm_options options{schedules[next++ % schedules.size()]};
        CHECK_MESSAGE(multiplies(products[i], cases[i].a[a], cases[i].b[b], cases[i].c[c], cases[i].before[c],
                                 cases[i].expected, options, next % 16 == 0 ? 2 : 1, &received),
                      "product ", i, " on mesh ", to_string(m.shape()), " with ",
                      to_string(*options.schedule), ": A ", to_string(layouts[a]), ", B ",
                      to_string(layouts[b]), ", C ", to_string(layouts[c]), ", rank ", m.rank());
      }
  return received;
}

}  // namespace test_support
