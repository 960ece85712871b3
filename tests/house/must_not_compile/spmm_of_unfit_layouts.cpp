// expect: these layouts of A and X cannot be multiplied
#include "partita/algebra/spmm.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"

using namespace partita;

#ifdef FAILS
using dense_layout = row_1d::dense_layout;  // A's columns are cut by col, X's are not
#else
using dense_layout = grid_2d::dense_layout;
#endif

dense<double, dense_layout, host> product(const sparse<double, grid_2d::sparse_layout, host>& a,
                                          const dense<double, dense_layout, host>& x) {
  return spmm(a, x);
}

int main() { return 0; }
