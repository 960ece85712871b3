// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Repeated products with the same sparse blocks.

#include <cstdint>
#include <type_traits>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The order in which a repeated product goes through the rows of its sparse block, which its result does not
/// depend on: another one where it pays within 20 products, theirs, or another one in any case.
enum class row_order : std::uint8_t { automatic, natural, clustered };

}  // namespace partita::local

namespace partita::detail {

/// y = a x + beta y for blocks that are multiplied repeatedly. Specialised for devices that cache a plan per
/// block; the general case has nothing to cache.
template <class T, class Device>
class spmm_product {
 public:
  explicit spmm_product(local::row_order = local::row_order::automatic) {}

  /// See the kernel spmm.
  void operator()(const device_queue<Device>& q, local::csr_view<T> a,
                  std::type_identity_t<matrix_view<const T>> x, std::type_identity_t<T> beta,
                  matrix_view<T> y) {
    spmm(q, a, x, beta, y);
  }

  bool reorders() const { return false; }
  /// Discards cached plans; required when memory of an operand is reused.
  void clear_plans() {}
};

}  // namespace partita::detail
