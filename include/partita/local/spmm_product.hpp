// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Repeated products with the same sparse blocks.

#include <type_traits>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::detail {

/// y = a x + beta y for blocks that are multiplied repeatedly. Specialised for devices that cache a plan per
/// block; the general case has nothing to cache.
template <class T, class Device>
class spmm_product {
 public:
  /// See the kernel spmm.
  void operator()(const device_queue<Device>& q, local::csr_view<T> a,
                  std::type_identity_t<matrix_view<const T>> x, std::type_identity_t<T> beta,
                  matrix_view<T> y) {
    spmm(q, a, x, beta, y);
  }

  /// Whether the kernel spmm_fused is as fast.
  static bool finishes(const device_queue<Device>&) { return true; }
  /// Discards cached plans; required when memory of an operand is reused.
  void clear_plans() {}
};

}  // namespace partita::detail
