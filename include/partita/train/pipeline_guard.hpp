// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The logits and gradients of a pipeline against exact ones.

#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "partita/algebra/reductions.hpp"

namespace partita::nn {

/// Keeps what an exact forward and backward pass gives, to compare a step with.
template <class T, class Device>
class pipeline_guard {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using gradient = dense<T, replicated, Device>;

  /// In the last stage.
  void keep(double loss, const matrix& logits) {
    loss_ = loss;
    if (!logits_)
      logits_.emplace(logits.mesh(), logits.row_blocking(), logits.col_blocking());  // (n, classes)
    copy(logits, *logits_);
  }
  /// In each stage, of its parameters.
  void keep(const gradient& g) {
    if (!gradient_) gradient_.emplace(g.mesh(), g.shape());  // (1, parameters)
    copy(g, *gradient_);
  }
  double loss() const { return loss_; }
  /// |Z - E| / |E| in Frobenius norms, E the logits that were kept, 0 for E = 0. Collective over the mesh.
  /// What travels: two all-reduces of one element.
  double difference(const matrix& z) const {
    matrix d(z.mesh(), z.row_blocking(), z.col_blocking());  // (n, classes)
    zip(z, *logits_, d, std::minus<>{});
    const double all = std::sqrt(product(*logits_, *logits_)), apart = std::sqrt(product(d, d));
    return all > 0 ? apart / all : 0;
  }
  /// The cosine of the angle between two gradients of all parameters, those of a step and those that were
  /// kept; 0 if one of them is 0. `stages`: a rank of every stage. Collective over them. What travels: an
  /// all-reduce of three elements.
  double cosine(const gradient& g, const communicator& stages) const {
    std::array<double, 3> sums{product(g, *gradient_), product(g, g), product(*gradient_, *gradient_)};
    stages.all_reduce(sums);
    return sums[1] > 0 && sums[2] > 0 ? sums[0] / std::sqrt(sums[1] * sums[2]) : 0;
  }

 private:
  /// The sum of x(i, j) y(i, j).
  template <class Matrix>
  static double product(const Matrix& x, const Matrix& y) {
    Matrix products(x.mesh(), x.row_blocking(), x.col_blocking());  // as X
    zip(x, y, products, std::multiplies<>{});
    return static_cast<double>(sum(products));
  }

  double loss_ = 0;
  std::optional<matrix> logits_;
  std::optional<gradient> gradient_;
};

}  // namespace partita::nn
