// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of tapes against finite differences.

#include "partita/autodiff/tape.hpp"
#include "support/matrices.hpp"

namespace test_support {

/// A function of the rank's numbers in an input or a parameter.
using host_tape = partita::autodiff::tape<double, partita::host>;
using host_variable = partita::autodiff::variable<double, partita::host>;

/// Compares the gradients of `loss` with respect to x and to w, of a tape that read them, with finite
/// differences, and what forward and backward receive with what is predicted. Every rank must call.
template <partita::layout L>
void check_tape(host_tape& t, const partita::autodiff::scalar<double, partita::host>& loss,
                partita::dense<double, L, partita::host>& x, host_variable of_x,
                partita::dense<double, partita::replicated, partita::host>& w, host_variable of_w) {
  const auto& m = t.mesh();
  t.forward();
  m.ledger().clear();
  t.forward();
  same(heard(m), t.predicted_forward(), "one forward");
  t.backward(loss);
  same(heard(m), t.predicted_forward() + t.predicted_backward(), "one forward and backward");
  const std::vector<double> dx = collect(t.gradient(of_x)), dw = collect(t.gradient(of_w));
  const auto slope = [&](double* entry) {  // null where other ranks have it
    const double before = entry ? *entry : 0, step = 1e-6;
    const auto at = [&](double value) {
      if (entry) *entry = value;
      t.forward();
      return loss.value();
    };
    const double above = at(before + step), below = at(before - step);
    if (entry) *entry = before;
    return (above - below) / (2 * step);
  };
  for (std::size_t i = 0; i < dw.size(); ++i)
    CHECK(slope(&w.values()[i]) == doctest::Approx(dw[i]).epsilon(1e-6));
  for (std::size_t e = 0; e < dx.size(); e += 2) {
    const auto v = static_cast<global_index>(e) / x.shape().cols,
               j = static_cast<global_index>(e) % x.shape().cols;
    const bool mine = x.row_range().contains(v) && x.col_range().contains(j);
    double* const entry = mine ? &x.local()(static_cast<partita::local_index>(v - x.row_range().begin),
                                            static_cast<partita::local_index>(j - x.col_range().begin))
                               : nullptr;
    CHECK(slope(entry) == doctest::Approx(dx[e]).epsilon(1e-6));
  }
}

}  // namespace test_support
