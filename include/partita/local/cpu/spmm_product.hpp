#pragma once
/// Products with the same sparse blocks again and again.

#include <type_traits>

#include "partita/local/cpu/spmm.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::cpu {

/// y = a x + beta y for blocks that come again. A device keeps plans for them; here there is nothing to keep.
template <class T>
struct spmm_product {
  /// As kernels::spmm.
  void operator()(const queue<host>& q, csr_view<T> a, std::type_identity_t<matrix_view<const T>> x,
                  std::type_identity_t<T> beta, matrix_view<T> y) {
    spmm_kernels::spmm(q, a, x, beta, y);
  }

  /// What lies at some address has changed.
  void forget() {}
};

}  // namespace partita::cpu
