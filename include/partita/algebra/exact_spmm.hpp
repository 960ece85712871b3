// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Y = A X on a reproducible mesh.

#include <memory>
#include <utility>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/spmm_schedule.hpp"
#include "partita/algebra/transposed_schedule.hpp"

namespace partita::detail {

/// Y = alpha A X with the same bits for every arrangement: the schedule of A, run with sums of double on a
/// common grid, for double matrices a second time with the remainders.
///
/// Collective over the mesh: constructor and call. What travels: twice for double, once for float, what the
/// schedule sends, its sums as doubles; and what common_grid does.
template <class T, class Device, class Schedule>
class exact_product {
 public:
  /// `terms`: at most so many make an element of Y.
  exact_product(const mesh<Device>& m, std::shared_ptr<const local::csr_tiles<T, Device>> a,
                Schedule schedule, global_index terms)
      : mesh_(m), a_(std::move(a)), schedule_(std::move(schedule)), terms_(terms) {}

  /// y = alpha A x; e has nothing but alpha.
  void operator()(matrix_view<const T> x, matrix_view<T> y, const local::spmm_epilogue<T>& e = {}) {
    const auto& q = mesh_.queue();
    const base::exact_grid grid =
        common_grid<T>(mesh_, magnitude(q, a_->stored_values()), magnitude(q, x), terms_);
    const auto size = static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols);
    if (sums_.size() != base::exact_sums<T> * size)
      sums_ = buffer<double, Device>(q, base::exact_sums<T> * size);
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      const matrix_view<double> sums{sums_.data() + static_cast<std::size_t>(level) * size, y.rows, y.cols,
                                     y.cols};
      schedule_.sum_parts(x, sums, part);
    });
    round_sums(q, std::span<const double>(sums_.span()), double{e.alpha}, std::span<T>(y.data, size));
  }

  bool accumulates() const { return false; }
  bool finishes() const { return false; }
  bool reorders() const { return schedule_.reorders(); }
  global_index multiplications() const { return schedule_.multiplications(); }
  traffic predicted() const {
    return global_index{base::exact_sums<T>} * schedule_.predicted() + predicted_grid(mesh_);
  }
  global_index words_of_x() const { return base::exact_sums<T> * schedule_.words_of_x(); }
  spmm_options options() const { return schedule_.options(); }

 private:
  mesh<Device> mesh_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  Schedule schedule_;
  global_index terms_;
  buffer<double, Device> sums_;
};

}  // namespace partita::detail
