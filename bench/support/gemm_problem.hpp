// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The products of the GEMM benchmark: their shapes, operands and results.

#include <string>
#include <vector>

#include "partita/base/index.hpp"

namespace bench {

using partita::global_index;

/// C = op(A) B (m x n = m x k times k x n), op(A) = A or A^T, of small integers, so that sums are exact in
/// any order and every element of C is known.
class gemm_problem {
 public:
  gemm_problem(std::string name, global_index m, global_index n, global_index k, bool transposed_a = false)
      : name_(std::move(name)), m_(m), n_(n), k_(k), transposed_a_(transposed_a) {
    const global_index both = period_a * period_b;
    for (global_index i = 0; i < period_a; ++i)
      for (global_index j = 0; j < period_b; ++j) {
        double of_period = 0, of_rest = 0;
        for (global_index p = 0; p < std::min(k, both); ++p) {
          const double term = of_op_a(i, p) * b(p, j);
          of_period += term;
          if (p < k % both) of_rest += term;
        }
        results_.push_back(static_cast<double>(k / both) * of_period + of_rest);
      }
  }

  const std::string& name() const { return name_; }
  global_index m() const { return m_; }
  global_index n() const { return n_; }
  global_index k() const { return k_; }
  bool transposed_a() const { return transposed_a_; }
  double flops() const {
    return 2 * static_cast<double>(m_) * static_cast<double>(n_) * static_cast<double>(k_);
  }

  partita::matrix_shape shape_of_a() const {
    return transposed_a_ ? partita::matrix_shape{k_, m_} : partita::matrix_shape{m_, k_};
  }
  partita::matrix_shape shape_of_b() const { return {k_, n_}; }
  partita::matrix_shape shape_of_c() const { return {m_, n_}; }

  /// Of A as it is stored.
  double a(global_index row, global_index col) const {
    return transposed_a_ ? of_op_a(col, row) : of_op_a(row, col);
  }
  static double b(global_index p, global_index j) {
    return static_cast<double>((5 * p + 11 * j) % period_b - period_b / 2);
  }
  double c(global_index i, global_index j) const {
    return results_[static_cast<std::size_t>(i % period_a * period_b + j % period_b)];
  }

 private:
  static constexpr global_index period_a = 31, period_b = 37;

  static double of_op_a(global_index i, global_index p) {
    return static_cast<double>((7 * i + 3 * p) % period_a - period_a / 2);
  }

  std::string name_;
  global_index m_, n_, k_;
  bool transposed_a_;
  std::vector<double> results_;  ///< of i < period_a, j < period_b
};

}  // namespace bench
