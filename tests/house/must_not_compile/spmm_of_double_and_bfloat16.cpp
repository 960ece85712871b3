// SPDX-License-Identifier: Apache-2.0
// expect: X of a product has the numbers of A, or is of bfloat16 for an A of float
#include "partita/algebra/spmm.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"

using namespace partita;

#ifdef FAILS
using value = double;
#else
using value = float;
#endif

using stored = dense<base::bfloat16, row_1d.dense, host>;

dense<value, row_1d.dense, host> product(const sparse<value, row_1d.sparse, host>& a, const stored& x);
dense<value, row_1d.dense, host> product(const sparse<value, row_1d.sparse, host>& a, const stored& x) {
  dense<value, row_1d.dense, host> y(a.mesh(), x.shape());
  spmm(1, a, x, 0, y);
  return y;
}

int main() { return 0; }
