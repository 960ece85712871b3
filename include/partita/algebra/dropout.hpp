// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dropout: the mask, and its application to a matrix in any layout. Local; no communication.

#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/base/random.hpp"

namespace partita {

/// Which entries are dropped: a pure function of seed, epoch, layer and the global row and column, so results
/// do not depend on the number of ranks. If the rows of matrices are a selection of vertices, `vertices` (in
/// device memory) gives the vertex of each row, used instead of the row. In replayed work (memory::captured)
/// the key's word is read from `word`.
struct dropout_mask {
  double probability = 0;
  random_key key;
  const global_index* vertices = nullptr;
  const std::uint64_t* word = nullptr;

  template <class T>
  base::dropped<T> function() const {
    const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1.0p53));
    using number = base::step_number<std::uint64_t>;
    return {word == nullptr ? number(key.word()) : number(word), threshold,
            static_cast<T>(1 / (1 - probability)), vertices};
  }
  /// The same mask for rows that are these vertices.
  dropout_mask of(const global_index* vertices_of_rows) const {
    return {probability, key, vertices_of_rows, word};
  }
};

namespace algebra::detail {

/// f on elements stored as base::bfloat16: computed in float and rounded; also row by row.
template <class F>
struct of_stored {
  F f;

  constexpr auto row(global_index i) const requires requires { f.row(i); }
  { return of_stored<decltype(f.row(i))>{f.row(i)}; }
  constexpr base::bfloat16 operator()(global_index j, base::bfloat16 x) const {
    return base::bfloat16(f(j, float{x}));
  }
};

}  // namespace algebra::detail

/// y(i, j) = x(i, j) / (1 - p), or 0 with probability p; y may alias x. Local; no communication.
template <class T, layout L, class Device>
void dropout(const dense<T, L, Device>& x, dense<T, L, Device>& y, const dropout_mask& mask) {
  transform_indexed(x, y, mask.function<T>());
}

/// The same for an X stored as base::bfloat16; each element of Y is rounded to nearest.
template <layout L, class Device>
void dropout(const dense<base::bfloat16, L, Device>& x, dense<base::bfloat16, L, Device>& y,
             const dropout_mask& mask) {
  transform_indexed(x, y, algebra::detail::of_stored<base::dropped<float>>{mask.function<float>()});
}

namespace algebra {

namespace detail {

/// f(x(i, j), dropout of y); `x`: the element of global row `first` and column 0.
template <class F, class T>
struct zipped_with_dropped {
  struct in_row {
    typename base::dropped<T>::in_row drop;
    F f;
    const T* x;
    constexpr T operator()(global_index j, T y) const { return f(x[j], drop(j, y)); }
  };

  base::dropped<T> drop;
  F f;
  const T* x;
  global_index first;
  std::ptrdiff_t stride;

  constexpr in_row row(global_index i) const { return {drop.row(i), f, x + (i - first) * stride}; }
  constexpr T operator()(global_index i, global_index j, T y) const { return row(i)(j, y); }
};

}  // namespace detail

/// y = f(x, dropout(y)) for each element: in one pass, unless passes go in chunks. Throws shape_error.
template <class T, layout L, class Device, class F>
void zip_dropout(const dense<T, L, Device>& x, dense<T, L, Device>& y, const dropout_mask& mask, F f) {
  if (!local::runs_whole(x.mesh().queue())) {
    partita::dropout(y, y, mask);
    return zip(x, y, y, f);
  }
  detail::require_same_blocks("zip_dropout", x, y);
  const matrix_view<const T> block = x.local();
  transform_indexed(y, y,
                    detail::zipped_with_dropped<F, T>{mask.function<T>(), f, block.data - x.col_range().begin,
                                                      x.row_range().begin, block.row_stride});
}

}  // namespace algebra

}  // namespace partita
