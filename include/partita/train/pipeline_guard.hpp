// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The logits of a pipeline against those of an exact forward pass.

#include <cmath>
#include <functional>
#include <optional>

#include "partita/algebra/reductions.hpp"

namespace partita::nn {

/// Keeps the loss and the logits of an exact forward pass, to compare others with.
template <class T, class Device>
class pipeline_guard {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  void keep(double loss, const matrix& logits) {
    loss_ = loss;
    if (!exact_) exact_.emplace(logits.mesh(), logits.row_blocking(), logits.col_blocking());  // (n, classes)
    copy(logits, *exact_);
  }
  double loss() const { return loss_; }
  /// |Z - E| / |E| in Frobenius norms, E the logits that were kept, 0 for E = 0. Collective over the mesh.
  /// What travels: two all-reduces of one element.
  double difference(const matrix& z) const {
    matrix d(z.mesh(), z.row_blocking(), z.col_blocking());  // (n, classes)
    zip(z, *exact_, d, std::minus<>{});
    const double all = norm(*exact_, *exact_), apart = norm(d, d);
    return all > 0 ? apart / all : 0;
  }

 private:
  static double norm(const matrix& x, const matrix& y) {
    matrix squares(x.mesh(), x.row_blocking(), x.col_blocking());  // (n, classes)
    zip(x, y, squares, std::multiplies<>{});
    return std::sqrt(static_cast<double>(sum(squares)));
  }

  double loss_ = 0;
  std::optional<matrix> exact_;
};

}  // namespace partita::nn
