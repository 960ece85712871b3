// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The logits and gradients of a pipeline against exact ones.

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "partita/algebra/reductions.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

/// Why the pipeline that was compared no longer follows the exact computation; empty while it does.
inline std::string divergence(const pipeline_comparison& c, const pipeline_options& how) {
  std::string why;
  if (!(std::abs(c.loss - c.exact_loss) <= how.tolerance * std::abs(c.exact_loss)))
    why = "its loss is " + std::to_string(c.loss) + ", the exact one " + std::to_string(c.exact_loss) +
          ", and the tolerance " + std::to_string(how.tolerance);
  if (!(c.gradient_cosine >= how.least_cosine))
    why += (why.empty() ? "" : "; ") + std::string("the cosine of the angle between the gradients is ") +
           std::to_string(c.gradient_cosine) + ", less than " + std::to_string(how.least_cosine);
  return why;
}

/// Which epochs are exact, and which are compared with an exact one.
class guarded_epochs {
 public:
  explicit guarded_epochs(const pipeline_options& how)
      : guard_(how.guard),
        action_(how.on_divergence),
        always_(how.history == chunk_history::exact || how.stages == 1 || how.chunk_count() == 1),
        exact_until_(how.exact_epochs),
        warm_up_(how.guard) {}

  /// Whether epoch e, from 1, is computed without history; 0: one after all that exact_epochs and the guard
  /// ask for.
  bool exact(int e) const { return always_ || (e > 0 && e <= exact_until_); }
  /// Every so many epochs, and in the first one after exact ones.
  bool compares(int e) const {
    return guard_ > 0 && (e % guard_ == 0 || (exact_until_ > 0 && e == exact_until_ + 1)) && !exact(e);
  }
  /// Epoch e has diverged.
  void diverged(int e) {
    if (action_ == guard_action::exact) exact_until_ = std::numeric_limits<int>::max() - 1;
    if (action_ == guard_action::refresh) refreshes_ = true;
    if (action_ == guard_action::warm_up) {
      exact_until_ = e + warm_up_;
      warm_up_ *= 2;
    }
  }
  /// Whether history is to become that of an exact pass before the next epoch.
  bool refreshes() const { return refreshes_; }
  /// The same, once.
  bool taken_refreshes() { return std::exchange(refreshes_, false); }

 private:
  int guard_;
  guard_action action_;
  bool always_;
  int exact_until_, warm_up_;
  bool refreshes_ = false;
};

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
  const gradient& gradients() const { return *gradient_; }
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
