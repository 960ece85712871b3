// SPDX-License-Identifier: Apache-2.0
#pragma once
/// From the layout in which matrices lie to the one in which they are multiplied, and back.

#include <memory>

#include "partita/transfer/redistribution.hpp"

namespace partita {

/// A planned X -> X' and Y' -> Y between two layouts, or nothing where the blocks are the same on this mesh.
///
/// Every rank of the mesh must construct it and call its functions. What travels: see redistribution.
template <class T, class Device>
class layout_change {
 public:
  /// X has rows cut by `in`, Y by `out`; the columns of both are cut by `features`. They lie in `outer`,
  /// X' and Y' in `inner`.
  layout_change(const mesh<Device>& m, const blocking& in, const blocking& out, const blocking& features,
                layout outer, layout inner) {
    if (partition::same_blocks(m.shape(), outer, inner)) return;
    to_inner_ = std::make_unique<redistribution<T, Device>>(m, in, features, outer, inner);
    to_outer_ = std::make_unique<redistribution<T, Device>>(m, out, features, inner, outer);
  }

  /// Whether the two layouts have different blocks; only then may the others be called.
  bool travels() const { return to_inner_ != nullptr; }
  template <layout Outer, layout Inner>
  void to_inner(const dense<T, Outer, Device>& x, dense<T, Inner, Device>& inner) {
    (*to_inner_)(x, inner);
  }
  template <layout Inner, layout Outer>
  void to_outer(const dense<T, Inner, Device>& inner, dense<T, Outer, Device>& y) {
    (*to_outer_)(inner, y);
  }

  /// What this rank receives in one way and back.
  traffic predicted() const {
    return to_inner_ ? to_inner_->predicted() + to_outer_->predicted() : traffic{};
  }

 private:
  std::unique_ptr<redistribution<T, Device>> to_inner_, to_outer_;
};

}  // namespace partita
