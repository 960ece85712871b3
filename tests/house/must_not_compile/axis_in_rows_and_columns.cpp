// SPDX-License-Identifier: Apache-2.0
// expect: an axis may partition the rows or the columns of a layout, not both
#include "partita/matrix/dense.hpp"
#include "partita/memory/host.hpp"

using partita::axis, partita::layout;

#ifdef FAILS
constexpr layout cut{axis::row, axis::col | axis::row};
#else
constexpr layout cut{axis::row, axis::col};
#endif

partita::matrix_shape shape_on(const partita::mesh<partita::host>& m);
partita::matrix_shape shape_on(const partita::mesh<partita::host>& m) {
  return partita::dense<double, cut, partita::host>(m, partita::matrix_shape{3, 2}).shape();
}

int main() { return 0; }
