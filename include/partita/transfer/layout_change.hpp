#pragma once
/// From the layout in which matrices lie to the one in which they are multiplied, and back.

#include <optional>

#include "partita/transfer/redistribution.hpp"

namespace partita {

/// A planned X -> X' and Y' -> Y between two layouts, or nothing where the blocks are the same on this mesh.
///
/// Every rank of the mesh must construct it and call its functions. What travels: see redistribution.
template <class T, class Place>
class layout_change {
 public:
  /// X has rows cut by `in`, Y by `out`; the columns of both are cut by `features`. They lie in `outer`,
  /// X' and Y' in `inner`.
  layout_change(const mesh<Place>& m, const blocking& in, const blocking& out, const blocking& features,
                layout outer, layout inner) {
    if (same_blocks(m.shape(), outer, inner)) return;
    enter_.emplace(m, in, features, outer, inner);
    leave_.emplace(m, out, features, inner, outer);
  }

  /// Whether the two layouts have different blocks; only then may the others be called.
  bool travels() const { return enter_.has_value(); }
  template <layout Outer, layout Inner>
  void enter(const dense<T, Outer, Place>& x, dense<T, Inner, Place>& inner) {
    (*enter_)(x, inner);
  }
  template <layout Inner, layout Outer>
  void leave(const dense<T, Inner, Place>& inner, dense<T, Outer, Place>& y) {
    (*leave_)(inner, y);
  }

  /// What this rank receives in one way and back.
  volume predicted() const { return enter_ ? enter_->predicted() + leave_->predicted() : volume{}; }

 private:
  std::optional<redistribution<T, Place>> enter_, leave_;
};

}  // namespace partita
