// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Layer normalisation: Ba, Kiros, Hinton (2016), arXiv:1607.06450, eq. 4.

#include <cmath>
#include <functional>

#include "partita/algebra/reductions.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

namespace detail {

/// x - part * (sum of the row).
template <class T>
struct less_part {
  T part;
  constexpr T operator()(T x, T sum) const { return x - sum * part; }
};

/// 1 / sqrt(squares part + epsilon).
template <class T>
struct inverse_deviation {
  T part, epsilon;
  constexpr T operator()(T squares) const { return T(1) / std::sqrt(squares * part + epsilon); }
};

}  // namespace detail

/// Z = gamma * N + beta, N = (H - mean) / sqrt(var + 1e-5), with mean and biased variance of each row (all n
/// x f; gamma and beta 1 x f). With g = gamma * dZ: dH = (g - mean(g) - N mean(g N)) / sqrt(var + 1e-5).
/// Local; no communication.
template <class T, class Device>
class layer_norm final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  layer_norm(global_index width, const builder<T, Device>& b)
      : gamma_(b.filled("gamma", {1, width}, T(1))),
        beta_(b.filled("beta", {1, width})),
        part_(T(1) / static_cast<T>(width)),
        normalized_(b.kept(b.row_blocking(), width)),
        products_(b.scratch(width)),
        inverse_deviations_(b.rows(1)),
        sums_(b.rows(1)) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass&) override {
    const matrix& x = dense_input_(h, z);
    matrix& normalized = normalized_.place(&z);
    row_sums(x, sums_);                                                 // (n, 1)
    transform_rows(x, sums_, normalized, detail::less_part<T>{part_});  // (n, f)
    zip(normalized, normalized, *products_, std::multiplies<>{});       // (n, f)
    row_sums(*products_, inverse_deviations_);                          // (n, 1)
    transform(inverse_deviations_, inverse_deviations_, detail::inverse_deviation<T>{part_, T(1e-5)});
    transform_rows(normalized, inverse_deviations_, normalized, std::multiplies<>{});  // (n, f)
    normalized_.keep(normalized);
    transform_columns(normalized, gamma_.value(), z, std::multiplies<>{});  // (n, f)
    add_row(beta_.value(), z);
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    matrix& products = *products_;
    zip(normalized_.widened(products), dz, products, std::multiplies<>{});  // (n, f)
    algebra::column_sums_part(products, gamma_.gradient());                 // (1, f)
    algebra::column_sums_part(dz, beta_.gradient());                        // (1, f)
    if (dh == nullptr) return;
    transform_columns(products, gamma_.value(), products, std::multiplies<>{});  // g N (n, f)
    row_sums(products, sums_);                                                   // (n, 1)
    transform_rows(normalized_.widened(products), sums_, products, std::multiplies<>{});
    transform_columns(dz, gamma_.value(), *dh, std::multiplies<>{});     // g (n, f)
    row_sums(*dh, sums_);                                                // (n, 1)
    transform_rows(*dh, sums_, *dh, detail::less_part<T>{part_});        // g - mean(g)
    zip(*dh, products, *dh, detail::less_part<T>{part_});                // - N mean(g N)
    transform_rows(*dh, inverse_deviations_, *dh, std::multiplies<>{});  // (n, f)
  }

  global_index width() const override { return gamma_.shape().cols; }

 private:
  parameter<T, Device>&gamma_, &beta_;
  T part_;
  algebra::kept_matrix<T, Device> normalized_;
  std::shared_ptr<matrix> products_;
  matrix inverse_deviations_, sums_;
  algebra::dense_operand<T, Device> dense_input_;
};

}  // namespace partita::nn
