// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution between the layout of the operands and the one a product multiplies in.

#include <memory>

#include "partita/transfer/redistribution.hpp"

namespace partita::transfer {

/// Planned redistributions X -> X' and Y' -> Y between two layouts; empty when both give the same blocks on
/// this mesh. `Stored`: the type of the numbers of X.
///
/// Collective over the mesh: constructor and members. What travels: see redistribution.
template <class T, class Device, class Stored = T>
class layout_change {
 public:
  /// The rows of X are partitioned by `in`, those of Y by `out`, and the columns of both by `features`. X and
  /// Y are in layout `outer`, X' and Y' in `inner`.
  layout_change(const mesh<Device>& m, const blocking& in, const blocking& out, const blocking& features,
                layout outer, layout inner) {
    if (partition::same_blocks(m.shape(), outer, inner)) return;
    to_inner_ = std::make_unique<redistribution<Stored, Device>>(m, in, features, outer, inner);
    to_outer_ = std::make_unique<redistribution<T, Device>>(m, out, features, inner, outer);
  }

  /// Whether the two layouts have different blocks; to_inner and to_outer may only be called if so.
  bool travels() const { return to_inner_ != nullptr; }
  void to_inner(matrix_view<const Stored> x, matrix_view<Stored> inner) { (*to_inner_)(x, inner); }
  void to_outer(matrix_view<const T> inner, matrix_view<T> y) { (*to_outer_)(inner, y); }

  /// What this rank receives in one to_inner and one to_outer.
  traffic predicted() const {
    return to_inner_ ? to_inner_->predicted() + to_outer_->predicted() : traffic{};
  }
  /// What it receives in one to_inner.
  traffic predicted_inner() const { return to_inner_ ? to_inner_->predicted() : traffic{}; }

 private:
  std::unique_ptr<redistribution<Stored, Device>> to_inner_;
  std::unique_ptr<redistribution<T, Device>> to_outer_;
};

}  // namespace partita::transfer
