#pragma once
/// Functions of single entries, on any layout. Nothing travels. On the host f may be a lambda; what a
/// function needs to run on a device too is in base/function.hpp.

#include "partita/local/kernels.hpp"
#include "partita/matrix/dense.hpp"

namespace partita {

namespace detail {

template <class A, class B>
void require_same_blocks(const char* what, const A& a, const B& b) {
  if (a.layout() != b.layout() ||
      !(a.row_blocking() == b.row_blocking() && a.col_blocking() == b.col_blocking()))
    throw shape_error(std::string(what) + " needs operands cut alike, not " + to_string(a.shape()) + " and " +
                      to_string(b.shape()));
}

/// f of global indices, for a block whose first entry is (row, col).
template <class Function>
struct with_global_indices {
  Function f;
  global_index row, col;

  template <class T>
  constexpr auto operator()(local_index i, local_index j, T value) const {
    return f(row + i, col + j, value);
  }
};

}  // namespace detail

/// y(i, j) = value. Nothing travels.
template <class T, layout L, class Place>
void fill(dense<T, L, Place>& y, std::type_identity_t<T> value) {
  fill(y.mesh().queue(), value, y.local());
}

/// y = x. Throws shape_error when they are not cut alike.
template <class T, layout X, layout Y, class Place>
void copy(const dense<T, X, Place>& x, dense<T, Y, Place>& y) {
  detail::require_same_blocks("copy", x, y);
  copy(x.mesh().queue(), x.local(), y.local());
}

/// y(i, j) = f(x(i, j)); y may be x. Throws shape_error when they are not cut alike.
template <class T, layout X, layout Y, class Place, class Function>
void map(const dense<T, X, Place>& x, dense<T, Y, Place>& y, Function f) {
  detail::require_same_blocks("map", x, y);
  map(x.mesh().queue(), f, x.local(), y.local());
}

/// y(i, j) = f(a(i, j), b(i, j)); y may be a or b. Throws shape_error when they are not cut alike.
template <class T, layout A, layout B, layout Y, class Place, class Function>
void zip(const dense<T, A, Place>& a, const dense<T, B, Place>& b, dense<T, Y, Place>& y, Function f) {
  detail::require_same_blocks("zip", a, b);
  detail::require_same_blocks("zip", a, y);
  zip(a.mesh().queue(), f, a.local(), b.local(), y.local());
}

/// y(i, j) = f(i, j, x(i, j)) with global indices; y may be x. Throws shape_error when they are not cut
/// alike.
template <class T, layout X, layout Y, class Place, class Function>
void map_indexed(const dense<T, X, Place>& x, dense<T, Y, Place>& y, Function f) {
  detail::require_same_blocks("map_indexed", x, y);
  const detail::with_global_indices<Function> of_block{f, x.row_range().begin, x.col_range().begin};
  map_indexed(x.mesh().queue(), of_block, x.local(), y.local());
}

/// y(i, j) += bias(0, j); bias is 1 x f on every rank. Throws shape_error naming the shapes.
template <class T, layout L, class Place>
void add_row(const dense<T, replicated, Place>& bias, dense<T, L, Place>& y) {
  if (bias.shape() != extent{1, y.shape().cols})
    throw shape_error("a row of " + to_string(bias.shape()) + " cannot be added to every row of " +
                      to_string(y.shape()));
  add_row(y.mesh().queue(), bias.local().data + y.col_range().begin, y.local());
}

}  // namespace partita
