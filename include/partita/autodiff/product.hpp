// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The products that a tape multiplies with.

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "partita/algebra/spmm.hpp"
#include "partita/autodiff/variable.hpp"

namespace partita::autodiff {

/// A planned Y = A X, as a tape multiplies with it; see spmm_plan.
template <class T, class Device>
class product {
 public:
  using views = detail::matrix_views<T, Device>;

  virtual ~product() = default;
  /// y = drop(clamp(A x + bias)); the beta of e is 0.
  virtual void operator()(views& x, views& y, const epilogue<T, Device>& e) = 0;
  /// What this rank receives in one call.
  virtual traffic predicted() const = 0;
};

/// Makes the products of a tape: with A, or with A^T where it is for backward, for the layout and the columns
/// of X; null where the tape is to plan its own.
template <class T, class Device>
using product_maker = std::function<std::shared_ptr<product<T, Device>>(
    const sparse<T, dynamic_layout, Device>&, layout, const blocking&, bool backward)>;

namespace detail {

template <class T, class Device>
class planned_product final : public product<T, Device> {
 public:
  using typename product<T, Device>::views;

  planned_product(const sparse<T, dynamic_layout, Device>& a, layout l, const blocking& columns)
      : plan_(a, l, columns) {}
  void operator()(views& x, views& y, const epilogue<T, Device>& e) override {
    plan_(1, x.any(), y.any(), e);
  }
  traffic predicted() const override { return plan_.predicted(); }

 private:
  spmm_plan<T, Device> plan_;
};

/// One plan for all products with a matrix in a layout and a width.
template <class T, class Device>
class planned_products {
 public:
  using matrix = sparse<T, dynamic_layout, Device>;

  std::shared_ptr<product<T, Device>> operator()(const matrix& a, layout l, const blocking& columns) {
    const auto known = std::ranges::find_if(
        made_, [&](const entry& e) { return is_same(e.a, a) && e.l == l && e.columns == columns; });
    if (known != made_.end()) return known->made;
    made_.push_back({a, l, columns, std::make_shared<planned_product<T, Device>>(a, l, columns)});
    return made_.back().made;
  }

 private:
  struct entry {
    matrix a;
    layout l;
    blocking columns;
    std::shared_ptr<product<T, Device>> made;
  };
  static bool is_same(const matrix& a, const matrix& b) {
    if (a.is_stored() != b.is_stored()) return false;
    return a.is_stored() ? a.analysed() == b.analysed()
                         : transposed(a).analysed() == transposed(b).analysed();
  }

  std::vector<entry> made_;
};

}  // namespace detail

}  // namespace partita::autodiff
