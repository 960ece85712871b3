// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A product on the blocks of this rank, fast or exact: what spmm_plan runs.

#include <memory>
#include <type_traits>
#include <utility>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/product_stages.hpp"
#include "partita/local/chunked_products.hpp"

namespace partita::algebra::detail {

/// What a plan says of itself. `supports_beta`, `fuses_epilogue`: whether products can be added to Y, and the
/// epilogue follow, in the pass that multiplies. `words_of_x`: of the words predicted, those that are numbers
/// of X.
struct product_facts {
  spmm_options options;
  traffic predicted;
  global_index words_of_x = 0, multiplications = 0;
  bool supports_beta = false, fuses_epilogue = false, reorders = false;
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

/// The kernels of a product in stages. On a reproducible mesh Y has the same bits for every arrangement: the
/// stages run with sums of double on a common grid, for double matrices a second time with the remainders.
///
/// Collective over the mesh: constructor and call. What travels: what the stages send; on a reproducible mesh
/// that twice for double, once for float, its sums as doubles, and what common_grid does.
template <class T, class Device, class Sum, class Stored>
class staged_product final : public product<T, Stored> {
 public:
  /// `terms`: at most so many make an element of Y.
  staged_product(product_stages<T, Device, Sum, Stored> stages, global_index terms)
      : stages_(std::move(stages)),
        terms_(terms),
        exact_(sums_exactly && stages_.plan().blocks().m.reproducible()),
        product_(stages_.plan().options().row_order) {}

  void operator()(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e) override {
    if constexpr (sums_exactly)
      if (exact_) return multiply_exactly(x, y, e.alpha);
    if constexpr (std::is_same_v<Sum, T>) {
      const auto rows = static_cast<std::size_t>(stages_.plan().a().rows);
      std::size_t number = 0, left = stages_.plan().rows_of_tiles();
      stages_.for_stages(x, stages_.begin(y), e.beta,
                         [&](std::size_t, const auto& part, auto from, T beta, auto to) {
                           // The last product added to a row of y has the end of the epilogue.
                           local::spmm_epilogue<T> fusion =
                               left <= rows ? e.from_row(part.first_row) : e.without_activation();
                           left -= static_cast<std::size_t>(part.entries.rows);
                           fusion.beta = beta;
                           multiply(number++, part, from, fusion, to);
                         });
      stages_.finish(y);
    }
  }
  product_facts facts() const override {
    const product_plan<T, Device>& plan = stages_.plan();
    product_facts f{plan.options(), plan.predicted(), plan.words_of_x(), plan.multiplications()};
    f.reorders = product_.reorders();
    if (exact_) {
      constexpr global_index times = base::exact_sums<T>;
      f.predicted = times * f.predicted + predicted_grid(plan.blocks().m);
      f.words_of_x *= times;
    } else {
      f.supports_beta = stages_.supports_beta();
      f.fuses_epilogue = f.supports_beta && !plan.sums_go() && product_.fuses_epilogue(queue());
    }
    return f;
  }

 private:
  static constexpr bool sums_exactly =
      std::is_same_v<Sum, double> && std::is_same_v<Stored, T> && local::sums_exactly<Device>;

  const device_queue<Device>& queue() const { return stages_.queue(); }

  /// y = the epilogue of the product of part `number` of a call.
  void multiply([[maybe_unused]] std::size_t number, const local::csr_slice<T>& part,
                matrix_view<const Stored> x, const local::spmm_epilogue<T>& e, matrix_view<T> y) {
    const auto multiply_near = [&] {
      if constexpr (std::is_same_v<Stored, T>)
        if (stages_.plan().blocks_stay()) return product_(queue(), part.entries, x, e, y);
      spmm_fused(queue(), part.entries, x, e, y);
    };
    if constexpr (std::is_same_v<Stored, T>) {
      const bool later_part = part.first_row > 0;
      if (stages_.plan().sums_go())
        local::chunked::spmm_transposed(queue(), passes_, number, part.entries, x, e.alpha, e.beta, y,
                                        later_part);
      else
        local::chunked::spmm_fused(queue(), passes_, number, part.entries, x, e, y, multiply_near,
                                   later_part);
    } else if (stages_.plan().sums_go()) {
      spmm_transposed(queue(), part.entries, x, e.alpha, e.beta, y);
    } else {
      multiply_near();
    }
  }

  void multiply_exactly(matrix_view<const Stored> x, matrix_view<T> y, double alpha) {
    const auto& q = queue();
    const auto grid = common_grid<T>(
        stages_.plan().blocks().m, magnitude(q, stages_.plan().a().stored_values()), magnitude(q, x), terms_);
    const auto size = static_cast<std::size_t>(y.rows) * static_cast<std::size_t>(y.cols);
    exact_sums_.reset(q, base::exact_sums<T> * size);
    base::for_exact_parts<T>(grid, [&](int level, auto rounding) {
      const matrix_view<Sum> sums{exact_sums_.data() + static_cast<std::size_t>(level) * size, y.rows, y.cols,
                                  y.cols};
      stages_.for_stages(x, stages_.begin(sums), 0,
                         [&](std::size_t, const auto& part, auto from, Sum beta, auto to) {
                           if (stages_.plan().sums_go())
                             exact_spmm_transposed(q, part.entries, from, rounding, beta, to);
                           else
                             exact_spmm(q, part.entries, from, rounding, beta, to);
                         });
      stages_.finish(sums);
    });
    round_sums(q, std::span<const Sum>(exact_sums_.span()), alpha, std::span<T>(y.data, size));
  }

  product_stages<T, Device, Sum, Stored> stages_;
  global_index terms_;
  bool exact_;
  local::tuned_spmm<T, Device> product_;
  local::entry_passes<Device> passes_;
  buffer<Sum, Device> exact_sums_;
};

/// A as a product multiplies with it: its blocks, or those of A^T where A itself is not stored.
template <class T, class Device>
struct multiplied_matrix {
  partita::mesh<Device> mesh;
  std::shared_ptr<local::tile_analysis<T, Device>> tiles;
  bool is_stored;
  blocking rows, cols;
  partita::layout layout;

  template <partita::layout A>
  static multiplied_matrix of(const sparse<T, A, Device>& a) {
    return {a.mesh(),         a.is_stored() ? a.analysed() : transposed(a).analysed(),
            a.is_stored(),    a.row_blocking(),
            a.col_blocking(), a.layout()};
  }
};

/// The product that multiplies X with columns `features`, in layout x; on a reproducible mesh an exact one.
/// Throws error for an X of bfloat16 there.
template <class Stored, class T, class Device>
std::unique_ptr<product<T, Stored>> make_product(const multiplied_matrix<T, Device>& a,
                                                 const blocking& features, layout x,
                                                 const spmm_options& options) {
  const auto make = [&]<class Sum>(Sum) -> std::unique_ptr<product<T, Stored>> {
    const spmm_blocks<Device> blocks{a.mesh,
                                     a.is_stored ? a.rows : a.cols,
                                     a.is_stored ? a.cols : a.rows,
                                     features,
                                     a.layout,
                                     x,
                                     a.is_stored ? row_flow::rows_come : row_flow::sums_go};
    return std::make_unique<staged_product<T, Device, Sum, Stored>>(
        product_stages<T, Device, Sum, Stored>(blocks, a.tiles, options), a.cols.size());
  };
  if constexpr (!std::is_same_v<Stored, T>) {
    if (a.mesh.reproducible())
      base::throw_error<error>({"spmm: A of ", matrix_shape{a.rows.size(), a.cols.size()},
                                " cannot multiply an X of bfloat16 on a reproducible mesh"});
  } else if constexpr (local::sums_exactly<Device>) {
    if (a.mesh.reproducible()) return make(double());
  }
  return make(T());
}

}  // namespace partita::algebra::detail
