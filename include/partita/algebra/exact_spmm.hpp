// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Y = A X on a reproducible mesh.

#include <memory>
#include <utility>
#include <variant>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/spmm_schedule.hpp"
#include "partita/algebra/transposed_schedule.hpp"

namespace partita::detail {

/// Y = alpha A X with the same bits for every arrangement: the schedule of A, run with sums of double on a
/// common grid, for double matrices a second time with the remainders.
///
/// Collective over the mesh: constructor and call. What travels: twice for double, once for float, what the
/// schedule sends, its sums as doubles; and what common_grid does.
template <class T, class Device>
class exact_product {
 public:
  using straight = spmm_schedule<T, Device, double>;
  using transposed = transposed_schedule<T, Device, double>;

  /// `terms`: at most so many make an element of Y.
  template <class Schedule>
  exact_product(const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a,
                Schedule schedule, global_index terms)
      : mesh_(m),
        a_(std::move(a)),
        schedule_(std::make_unique<std::variant<straight, transposed>>(std::move(schedule))),
        terms_(terms) {}

  /// y = alpha A x; e has nothing but alpha.
  void operator()(matrix_view<const T> x, matrix_view<T> y, const local::spmm_epilogue<T>& e = {}) {
    const auto& q = mesh_.queue();
    const base::exact_grid grid =
        common_grid<T>(mesh_, magnitude(q, a_->all_values()), magnitude(q, x), terms_);
    const auto size = static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols);
    if (sums_.size() != base::exact_sums<T> * size)
      sums_ = buffer<double, Device>(q, base::exact_sums<T> * size);
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      const matrix_view<double> sums{sums_.data() + static_cast<std::size_t>(level) * size, y.rows, y.cols,
                                     y.cols};
      std::visit([&](auto& s) { s.sum_parts(x, sums, part); }, *schedule_);
    });
    round_sums(q, std::span<const double>(sums_.span()), double{e.alpha}, std::span<T>(y.data, size));
  }

  bool accumulates() const { return false; }
  bool finishes() const { return false; }
  global_index multiplications() const {
    return std::visit([](const auto& s) { return s.multiplications(); }, *schedule_);
  }
  traffic predicted() const {
    const traffic once = std::visit([](const auto& s) { return s.predicted(); }, *schedule_);
    return global_index{base::exact_sums<T>} * once + predicted_grid(mesh_);
  }
  spmm_options options() const {
    return std::visit([](const auto& s) { return s.options(); }, *schedule_);
  }
  void require(const blocking& x_rows, const blocking& x_cols, const blocking& y_rows,
               const blocking& y_cols) const {
    std::visit([&](const auto& s) { s.require(x_rows, x_cols, y_rows, y_cols); }, *schedule_);
  }

 private:
  mesh<Device> mesh_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  std::unique_ptr<std::variant<straight, transposed>> schedule_;
  global_index terms_;
  buffer<double, Device> sums_;
};

/// The schedules that a plan may have on a device.
template <class T, class Device>
struct product_schedules {
  using type = std::variant<spmm_schedule<T, Device>, transposed_schedule<T, Device>>;
};
template <class T, class Device>
requires local::sums_exactly<Device>
struct product_schedules<T, Device> {
  using type =
      std::variant<spmm_schedule<T, Device>, transposed_schedule<T, Device>, exact_product<T, Device>>;
};

}  // namespace partita::detail
