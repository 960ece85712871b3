// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A product of this rank's blocks, as run by spmm_plan.

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "partita/algebra/product_stages.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/transfer/row_cover.hpp"

namespace partita::algebra::detail {

/// What a plan reports. `supports_beta`, `fuses_epilogue`: whether the multiplying pass can add to Y and
/// apply the epilogue. `words_of_x`: the predicted words that are elements of X. `between_nodes`: the part of
/// the predicted traffic between nodes, see spmm_plan.
struct product_facts {
  spmm_options options;
  traffic predicted;
  traffic between_nodes = {};
  global_index words_of_x = 0, multiplications = 0;
  axis_set summed = {};  ///< the axes along which ranks add up their parts of Y
  bool supports_beta = false, fuses_epilogue = false, reorders = false;
};

/// The number of parts in which Y (m x f) is redistributed, each sent while the next is multiplied: parts of
/// 2^17 bytes per rank, at most 8; on devices, where each part costs a launch per rank, 2^23 bytes and at
/// most 4; a single part over far memory.
template <class T, class Device>
std::size_t parts_of_result(const mesh<Device>& m, global_index rows, global_index features) {
  if (local::chunk_bytes(m.queue()) > 0) return 1;
  constexpr global_index least = global_index{1} << (memory::enqueues<Device> ? 23 : 17);
  const global_index bytes = rows * features / m.size() * static_cast<global_index>(sizeof(T));
  return static_cast<std::size_t>(
      std::clamp<global_index>(bytes / least, 1, memory::enqueues<Device> ? 4 : 8));
}
/// The number of parts in which sums are sent, each while the next is multiplied: the slices requested, or
/// the parts of the result; one part if a single piece was requested.
template <class T, class Device>
std::size_t parts_of_sums(const spmm_blocks<Device>& b, const spmm_options& asked) {
  if (asked.slices > 0) return static_cast<std::size_t>(asked.slices);
  return asked.chunks == 1 ? 1 : parts_of_result<T>(b.m, b.rows.size(), b.features.size());
}

/// Y = A X in one layout.
template <class T, class Stored>
class product {
 public:
  virtual ~product() = default;
  /// y = the epilogue e of A x, for this rank's blocks; e asks for no more than facts() allow.
  virtual void operator()(matrix_view<const Stored> x, matrix_view<T> y,
                          const local::spmm_epilogue<T>& e) = 0;
  /// The same; calls completed.done(j) when the rows of chunk j of y are complete.
  virtual void in_chunks(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e,
                         const completed_rows& completed) {
    (*this)(x, y, e);
    for (std::size_t j = 0; j < completed.chunks.size(); ++j) completed.done(j);
  }
  /// Prepares in_chunks for these rows in each chunk. Synchronises with the device.
  virtual void plan_chunks(const std::vector<std::vector<interval>>&) {}
  virtual product_facts facts() const = 0;
};

/// The kernels of a staged product. Collective over the mesh: constructor and call. What travels: what the
/// stages send.
///
/// A `part` is a product over the ranks along row alone, with this rank's rows of the arranged X. Its result
/// is added to Y before sums are taken along other axes: the part's stages run first, then these. `copies`
/// holds copies of A's entries for both.
template <class T, class Device, class Stored>
class staged_product final : public product<T, Stored> {
 public:
  explicit staged_product(product_stages<T, Device, T, Stored> stages, std::size_t parts_of_sums = 1,
                          std::unique_ptr<staged_product> part = nullptr,
                          std::shared_ptr<const void> copies = nullptr)
      : stages_(std::move(stages)),
        product_(stages_.plan().options().row_order, stages_.plan().blocks_stay()),
        part_(std::move(part)),
        copies_(std::move(copies)) {
    auto* const sums = stages_.sums().in_parts();
    if (sums == nullptr || !stages_.completes_sums() || parts_of_sums == 1) return;
    sums->cut(parts_of_sums);
    rows_of_sums_ = sums->rows_of_parts();
    stages_.count_entries(rows_of_sums_);
  }

  void operator()(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e) override {
    x = stages_.arranged(x);
    const matrix_view<T> sums = stages_.begin(y);
    local::spmm_epilogue<T> last = e;
    if (part_) {
      part_->multiply(stages_.plan().sums_go() ? x : stages_.plan().own_rows(0, x), sums,
                      e.without_activation());
      last.beta = 1;
    }
    const auto leave = [&](std::size_t) { stages_.sums().leave(y); };
    const completed_rows leaving{rows_of_sums_, leave};
    multiply(x, sums, last, rows_of_sums_.empty() ? nullptr : &leaving);
    stages_.finish(y);
  }
  void in_chunks(matrix_view<const Stored> x, matrix_view<T> y, const local::spmm_epilogue<T>& e,
                 const completed_rows& completed) override {
    if (part_ || e.has_activation() || !stages_.completes_rows())
      return product<T, Stored>::in_chunks(x, y, e, completed);
    multiply(stages_.arranged(x), y, e, &completed);
  }
  void plan_chunks(const std::vector<std::vector<interval>>& chunks) override {
    if (stages_.completes_rows()) stages_.count_entries(chunks);
  }
  product_facts facts() const override {
    const product_plan<T, Device>& plan = stages_.plan();
    product_facts f{plan.options(),    plan.predicted(),       plan.predicted_between_nodes(),
                    plan.words_of_x(), plan.multiplications(), plan.summed()};
    f.reorders = product_.reorders();
    if (const auto* const sums = stages_.sums().in_parts()) f.predicted.messages += sums->more_messages();
    f.supports_beta = stages_.supports_beta();
    f.fuses_epilogue = f.supports_beta && !plan.sums_go();
    if (part_) {
      const product_facts of_part = part_->facts();
      f.options.rows = row_exchange::cover;
      f.predicted += of_part.predicted;
      f.between_nodes += of_part.between_nodes;
      f.words_of_x += of_part.words_of_x;
      f.multiplications += of_part.multiplications;
    }
    return f;
  }

 private:
  /// sums = the end e of the product with the arranged x, on this rank and after its sums along row.
  void multiply(matrix_view<const Stored> x, matrix_view<T> sums, const local::spmm_epilogue<T>& e,
                const completed_rows* completed = nullptr) {
    const auto rows = static_cast<std::size_t>(stages_.plan().a().rows);
    std::size_t number = 0;
    std::size_t left = stages_.plan().rows_of_tiles();
    const auto kernel = [&](std::size_t, const auto& part, auto from, T beta, auto to) {
      // The last product added to a row of y applies the end of the epilogue.
      local::spmm_epilogue<T> fusion = left <= rows ? e.from_row(part.first_row) : e.without_activation();
      left -= static_cast<std::size_t>(part.entries.rows);
      fusion.beta = beta;
      const auto whole = [&] {
        if constexpr (std::is_same_v<Stored, T>)
          product_(queue(), part.entries, from, fusion, to);
        else
          spmm_fused(queue(), part.entries, from, fusion, to);
      };
      if (stages_.plan().sums_go())
        local::chunked::spmm_transposed(queue(), passes_, number++, part.entries, from, fusion.alpha, beta,
                                        to, part.first_row > 0);
      else
        local::chunked::spmm_fused(queue(), passes_, number++, part.entries, from, fusion, to, whole,
                                   part.first_row > 0);
    };
    stages_.for_stages_of(x, sums, e.beta, kernel, completed);
  }
  const device_queue<Device>& queue() const { return stages_.queue(); }

  product_stages<T, Device, T, Stored> stages_;
  local::tuned_spmm<T, Device> product_;
  local::entry_passes<Device> passes_;
  std::unique_ptr<staged_product> part_;
  std::shared_ptr<const void> copies_;
  std::vector<std::vector<interval>> rows_of_sums_;  // rows sent in each part, if there are several
};

/// A as a product uses it: its blocks, or those of A^T if A itself is not stored.
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
  /// How its product with an X in layout x, of columns `features`, is partitioned.
  spmm_blocks<Device> blocks(const blocking& features, partita::layout x) const {
    return {mesh,
            is_stored ? rows : cols,
            is_stored ? cols : rows,
            features,
            layout,
            x,
            is_stored ? row_flow::rows_come : row_flow::sums_go};
  }
};

/// A product that exchanges along row the rows of a vertex cover: it multiplies the entries that are kept,
/// and in its part the entries that were sent, read transposed. Blocks of A stay in place. What travels
/// besides, for the first such product with these blocks: see transfer::make_row_cover.
template <class Stored, class T, class Device>
std::unique_ptr<product<T, Stored>> make_covered_product(const spmm_blocks<Device>& blocks,
                                                         local::tile_analysis<T, Device>& a,
                                                         spmm_options options) {
  if (blocks.col_cut() && options.stationary == stationary::c)
    throw error("row_exchange::cover is for blocks of A that stay in place: not with stationary::c");
  using stages = product_stages<T, Device, T, Stored>;
  using staged = staged_product<T, Device, Stored>;
  const auto cover = a.shared_copies([&] { return transfer::make_row_cover(blocks.m, a.tiles()); });
  if (blocks.col_cut()) options.stationary = stationary::a;
  options.rows = row_exchange::sparsity_aware;
  const mesh<Device>& line = cover->sent.mesh();
  const spmm_blocks<Device> of_part{
      line,
      cover->sent.row_blocking(),
      cover->sent.col_blocking(),
      blocking::even(blocks.columns(options).size(), line.shape(), nesting::cols),
      row_1d.sparse,
      row_1d.dense,
      blocks.sums_go() ? row_flow::rows_come : row_flow::sums_go};
  spmm_options on_line = options;
  on_line.ranks_of_node = line_ranks_of_node(blocks.m.shape(), options.ranks_of_node);
  auto part = std::make_unique<staged>(stages(of_part, cover->sent.analysed(), on_line));
  return std::make_unique<staged>(stages(blocks, cover->kept.analysed(), options),
                                  parts_of_sums<T>(blocks, options), std::move(part), cover);
}

/// The product that multiplies an X in layout x with columns `features`.
template <class Stored, class T, class Device>
std::unique_ptr<product<T, Stored>> make_product(const multiplied_matrix<T, Device>& a,
                                                 const blocking& features, layout x, spmm_options options) {
  const spmm_blocks<Device> blocks = a.blocks(features, x);
  if (blocks.row_ranks() == 1 && options.rows == row_exchange::cover)
    options.rows = row_exchange::sparsity_aware;
  if constexpr (std::is_same_v<Stored, T>)
    if (const auto* const verbs = reproducible_verbs_of<T>(a.mesh)) {
      if (options.encoding != local::row_encoding::exact)
        base::throw_error<error>(
            {"rows in ", local::name_of(options.encoding),
             " are not available on a reproducible mesh: what a rank has itself is exact"});
      return verbs->make_product(blocks, a.tiles, options, a.cols.size());
    }
  if (options.rows == row_exchange::cover) return make_covered_product<Stored>(blocks, *a.tiles, options);
  return std::make_unique<staged_product<T, Device, Stored>>(
      product_stages<T, Device, T, Stored>(blocks, a.tiles, options), parts_of_sums<T>(blocks, options));
}

}  // namespace partita::algebra::detail
