// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Finite-difference check of a model's gradients.

#include <algorithm>
#include <cmath>
#include <functional>

#include "partita/nn/model.hpp"

namespace partita::nn {

/// A relative error: the largest |g - (loss(w + step) - loss(w - step)) / (2 step)| over all parameters w,
/// where g is the gradient computed by backward, divided by the largest |g| or difference of all of them; 0
/// where all are 0. The parameters are restored. At a kink of the loss, such as the relu of exactly 0,
/// differences do not match a correct gradient. Check on more than one rank: on one rank, a gradient that is
/// summed over the ranks too early looks correct.
///
/// loss(logits, gradient): the loss of logits (n x classes), and d loss / d logits. Collective over the mesh.
/// What travels: 2 w + 1 forward and one backward passes for w parameters, so use small models, in double
/// precision.
template <class T, class Device, class Loss>
double gradient_error(model<T, Device>& net, const algebra::operand<T, Device>& x, Loss loss, double step,
                      const pass& p = {}) {
  using matrix = dense<T, vertex_rows, Device>;
  const auto& q = x.mesh().queue();
  auto& set = net.parameters();
  const std::span<T> values = set.values().values();
  std::vector<T> gradient(values.size()), before(values.size());
  std::optional<matrix> scratch;
  const auto evaluate = [&] {
    const matrix& logits = net.forward(x, p);
    if (!scratch) scratch.emplace(logits.mesh(), logits.row_blocking(), logits.col_blocking());
    return loss(logits, *scratch);
  };
  (void)evaluate();
  net.backward(*scratch);
  copy(q, std::span<const T>(set.gradients().values()), std::span<T>(gradient));
  copy(q, std::span<const T>(values), std::span<T>(before));
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto loss_at = [&](double change) {
      const T moved[] = {static_cast<T>(static_cast<double>(before[i]) + change)};
      copy(q, std::span<const T>(moved), values.subspan(i, 1));
      return evaluate();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    copy(q, std::span<const T>(before).subspan(i, 1), values.subspan(i, 1));
    off = std::max(off, std::abs(slope - static_cast<double>(gradient[i])));
    largest = std::max({largest, std::abs(static_cast<double>(gradient[i])), std::abs(slope)});
  }
  return largest == 0 ? 0 : off / largest;
}

}  // namespace partita::nn
