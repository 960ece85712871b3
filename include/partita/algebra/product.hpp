// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A product on the blocks of this rank: what spmm_plan runs.

#include <memory>
#include <type_traits>
#include <utility>

#include "partita/algebra/product_stages.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
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

/// The kernels of a product in stages. Collective over the mesh: constructor and call. What travels: what the
/// stages send.
template <class T, class Device, class Stored>
class staged_product final : public product<T, Stored> {
 public:
  explicit staged_product(product_stages<T, Device, T, Stored> stages)
      : stages_(std::move(stages)),
        product_(stages_.plan().options().row_order, stages_.plan().blocks_stay()) {}

  void operator()(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e) override {
    const auto rows = static_cast<std::size_t>(stages_.plan().a().rows);
    [[maybe_unused]] std::size_t number = 0;
    std::size_t left = stages_.plan().rows_of_tiles();
    stages_.for_stages(
        x, stages_.begin(y), e.beta, [&](std::size_t, const auto& part, auto from, T beta, auto to) {
          // The last product added to a row of y has the end of the epilogue.
          local::spmm_epilogue<T> fusion = left <= rows ? e.from_row(part.first_row) : e.without_activation();
          left -= static_cast<std::size_t>(part.entries.rows);
          fusion.beta = beta;
          const bool goes = stages_.plan().sums_go();
          if constexpr (!std::is_same_v<Stored, T>) {  // addressed where it is
            if (goes)
              spmm_transposed(queue(), part.entries, from, fusion.alpha, beta, to);
            else
              spmm_fused(queue(), part.entries, from, fusion, to);
          } else if (goes) {
            local::chunked::spmm_transposed(queue(), passes_, number++, part.entries, from, fusion.alpha,
                                            beta, to, part.first_row > 0);
          } else {
            local::chunked::spmm_fused(
                queue(), passes_, number++, part.entries, from, fusion, to,
                [&] { product_(queue(), part.entries, from, fusion, to); }, part.first_row > 0);
          }
        });
    stages_.finish(y);
  }
  product_facts facts() const override {
    const product_plan<T, Device>& plan = stages_.plan();
    product_facts f{plan.options(), plan.predicted(), plan.words_of_x(), plan.multiplications()};
    f.reorders = product_.reorders();
    f.supports_beta = stages_.supports_beta();
    f.fuses_epilogue = f.supports_beta && !plan.sums_go() && product_.fuses_epilogue(queue());
    return f;
  }

 private:
  const device_queue<Device>& queue() const { return stages_.queue(); }

  product_stages<T, Device, T, Stored> stages_;
  local::tuned_spmm<T, Device> product_;
  local::entry_passes<Device> passes_;
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

/// The product that multiplies X with columns `features`, in layout x.
template <class Stored, class T, class Device>
std::unique_ptr<product<T, Stored>> make_product(const multiplied_matrix<T, Device>& a,
                                                 const blocking& features, layout x,
                                                 const spmm_options& options) {
  const spmm_blocks<Device> blocks{a.mesh,
                                   a.is_stored ? a.rows : a.cols,
                                   a.is_stored ? a.cols : a.rows,
                                   features,
                                   a.layout,
                                   x,
                                   a.is_stored ? row_flow::rows_come : row_flow::sums_go};
  if constexpr (std::is_same_v<Stored, T>)
    if (const auto* const verbs = reproducible_verbs_of<T>(a.mesh))
      return verbs->make_product(blocks, a.tiles, options, a.cols.size());
  return std::make_unique<staged_product<T, Device, Stored>>(
      product_stages<T, Device, T, Stored>(blocks, a.tiles, options));
}

}  // namespace partita::algebra::detail
