// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products with the same sparse blocks again and again.

#include <type_traits>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::detail {

/// y = a x + beta y for blocks that come again. A device that keeps plans for them specialises it; here there
/// is nothing to keep.
template <class T, class Device>
class spmm_product {
 public:
  /// As the kernel spmm.
  void operator()(const device_queue<Device>& q, local::csr_view<T> a,
                  std::type_identity_t<matrix_view<const T>> x, std::type_identity_t<T> beta,
                  matrix_view<T> y) {
    spmm(q, a, x, beta, y);
  }

  /// What lies at some address has changed.
  void clear_plans() {}
};

}  // namespace partita::detail
