// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The largest neighbours of rows, and the way back to them.

#include <cmath>

#include "partita/local/view.hpp"

namespace partita::reference {

/// y(i, j) = max_e x(col(e), j) over the entries e of row i, arg(i, j) is the first that attained it.
template <class T>
void max_aggregate(local::input_csr<T> a, local::input_view<T> x, matrix_view<T> y,
                   matrix_view<local_index> arg) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) {
      y(i, j) = 0;
      arg(i, j) = -1;
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        if (arg(i, j) < 0 || x(a.columns[e], j) > y(i, j) ||
            (std::isnan(x(a.columns[e], j)) && !std::isnan(y(i, j)))) {
          y(i, j) = x(a.columns[e], j);
          arg(i, j) = e;
        }
    }
}

/// dx(col(e), j) += dy(i, j) in the order of i, for e = arg(i, j) where it is not -1.
template <class T>
void max_scatter(local::input_csr<T> a, matrix_view<const local_index> arg, local::input_view<T> dy,
                 matrix_view<T> dx) {
  for (local_index i = 0; i < dy.rows; ++i)
    for (local_index j = 0; j < dy.cols; ++j)
      if (arg(i, j) >= 0) dx(a.columns[arg(i, j)], j) += dy(i, j);
}

}  // namespace partita::reference
