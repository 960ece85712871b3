// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A product on the blocks of this rank, whatever the schedule: what spmm_plan runs.

#include <memory>
#include <type_traits>
#include <utility>

#include "partita/algebra/exact_spmm.hpp"

namespace partita::detail {

/// What a plan says of itself. `accumulates`, `finishes`: whether products can be added to Y, and the
/// epilogue follow, in the pass that multiplies. `words_of_x`: of the words predicted, those that are numbers
/// of X.
struct product_facts {
  spmm_options options;
  traffic predicted;
  global_index words_of_x = 0, multiplications = 0;
  bool accumulates = false, finishes = false, reorders = false;
};

/// Y = A X in one layout.
template <class T, class Stored>
class product {
 public:
  virtual ~product() = default;
  /// y = the epilogue e of A x, for this rank's blocks; e has no more than facts() allow.
  virtual void operator()(matrix_view<const Stored> x, matrix_view<T> y,
                          const local::spmm_epilogue<T>& e) = 0;
  virtual product_facts facts() const = 0;
};

template <class T, class Stored, class Schedule>
class scheduled_product final : public product<T, Stored> {
 public:
  explicit scheduled_product(Schedule schedule) : schedule_(std::move(schedule)) {}

  void operator()(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e) override {
    schedule_(x, y, e);
  }
  product_facts facts() const override {
    return {schedule_.options(),         schedule_.predicted(),   schedule_.words_of_x(),
            schedule_.multiplications(), schedule_.accumulates(), schedule_.finishes(),
            schedule_.reorders()};
  }

 private:
  Schedule schedule_;
};

/// A as a product multiplies with it: its blocks, or those of A^T where A itself is not stored.
template <class T, class Device>
struct multiplied_matrix {
  partita::mesh<Device> mesh;
  std::shared_ptr<const local::csr_tiles<T, Device>> tiles;
  bool is_stored;
  blocking rows, cols;
  partita::layout layout;

  template <partita::layout A>
  static multiplied_matrix of(const sparse<T, A, Device>& a) {
    return {a.mesh(),         a.is_stored() ? a.local() : transposed(a).local(),
            a.is_stored(),    a.row_blocking(),
            a.col_blocking(), a.layout()};
  }
  /// A schedule for X with columns `features`, in layout x.
  template <class Schedule>
  Schedule scheduled(const blocking& features, partita::layout x, const spmm_options& options) const {
    return Schedule(mesh, tiles, is_stored ? rows : cols, is_stored ? cols : rows, features, layout, x,
                    options);
  }
};

/// The product that multiplies X with columns `features`, in layout x; on a reproducible mesh an exact one.
/// Throws error for an X of bfloat16 there.
template <class Stored, class T, class Device>
std::unique_ptr<product<T, Stored>> make_product(const multiplied_matrix<T, Device>& a,
                                                 const blocking& features, layout x,
                                                 const spmm_options& options) {
  const auto make = [&]<class Schedule>(std::type_identity<Schedule>) -> std::unique_ptr<product<T, Stored>> {
    return std::make_unique<scheduled_product<T, Stored, Schedule>>(
        a.template scheduled<Schedule>(features, x, options));
  };
  const auto exact =
      [&]<class Schedule>(std::type_identity<Schedule>) -> std::unique_ptr<product<T, Stored>> {
    using summed = exact_product<T, Device, Schedule>;
    return std::make_unique<scheduled_product<T, Stored, summed>>(
        summed(a.mesh, a.tiles, a.template scheduled<Schedule>(features, x, options), a.cols.size()));
  };
  if constexpr (!std::is_same_v<Stored, T>) {
    if (a.mesh.reproducible())
      throw_error<error>({"spmm: A of ", matrix_shape{a.rows.size(), a.cols.size()},
                          " cannot multiply an X of bfloat16 on a reproducible mesh"});
  } else if constexpr (local::sums_exactly<Device>) {
    if (a.mesh.reproducible())
      return a.is_stored ? exact(std::type_identity<spmm_schedule<T, Device, double>>())
                         : exact(std::type_identity<transposed_schedule<T, Device, double>>());
  }
  return a.is_stored ? make(std::type_identity<spmm_schedule<T, Device, T, Stored>>())
                     : make(std::type_identity<transposed_schedule<T, Device, T, Stored>>());
}

}  // namespace partita::detail
