// SPDX-License-Identifier: Apache-2.0
// expect: A and B of gemm have elements of one type
#include "partita/algebra/gemm.hpp"
#include "partita/memory/host.hpp"

#ifdef FAILS
using value = double;
#else
using value = float;
#endif

using partita::dense, partita::replicated, partita::host;

partita::matrix_shape product(const dense<float, replicated, host>& a,
                              const dense<value, replicated, host>& b);
partita::matrix_shape product(const dense<float, replicated, host>& a,
                              const dense<value, replicated, host>& b) {
  return gemm(transposed(a), b).shape();
}

int main() { return 0; }
