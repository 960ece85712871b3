// SPDX-License-Identifier: Apache-2.0
// expect: these layouts of A and X cannot be multiplied
#include "partita/algebra/spmm.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"

using namespace partita;

#ifdef FAILS
constexpr layout cut = row_1d.dense;  // A's columns are cut by col, X's are not
#else
constexpr layout cut = grid_2d.dense;
#endif

dense<double, cut, host> product(const sparse<double, grid_2d.sparse, host>& a,
                                 const dense<double, cut, host>& x);
dense<double, cut, host> product(const sparse<double, grid_2d.sparse, host>& a,
                                 const dense<double, cut, host>& x) {
  return spmm(a, x);
}

int main() { return 0; }
