// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Repeated products with the same sparse blocks.

#include <cstdint>
#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The order in which a repeated product goes through the rows of its sparse block, which its result does not
/// depend on: another one where it pays within 20 products, theirs, or another one in any case.
enum class row_order : std::uint8_t { automatic, natural, clustered };

/// The epilogue of a x for blocks that are multiplied repeatedly. Specialised for devices that cache a plan
/// per block; the general case has nothing to cache.
template <class T, class Device>
class tuned_spmm {
 public:
  /// `repeats`: whether its blocks stay in memory and are multiplied again; else it is the kernel spmm_fused.
  explicit tuned_spmm(local::row_order = local::row_order::automatic, bool /*repeats*/ = true) {}

  /// See the kernel spmm_fused.
  void operator()(const device_queue<Device>& q, local::csr_view<T> a,
                  std::type_identity_t<matrix_view<const T>> x, const local::spmm_epilogue<T>& fusion,
                  matrix_view<T> y) {
    spmm_fused(q, a, x, fusion, y);
  }

  /// Whether the rows of a block are in another order.
  bool reorders() const { return false; }
};

}  // namespace partita::local
