// SPDX-License-Identifier: Apache-2.0
// expect: the values of a dense matrix are float, double or base::bfloat16
#include "partita/matrix/dense.hpp"
#include "partita/memory/host.hpp"

#ifdef FAILS
using value = int;
#else
using value = float;
#endif

using partita::mesh, partita::host;

partita::matrix_shape shape_on(const mesh<host>& m);
partita::matrix_shape shape_on(const mesh<host>& m) {
  return partita::dense<value, partita::replicated, host>(m, partita::matrix_shape{3, 2}).shape();
}

int main() { return 0; }
