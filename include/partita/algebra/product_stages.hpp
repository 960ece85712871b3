// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The stages of a product: of A X, where rows of X are received before a kernel, and of A^T X with only A
/// stored, where sums are sent after it. Each is the adjoint of the other.
///
/// Let B(r, d, c) be the sub-block (depth d, col c) of row block r of X; A's columns at (d, c) are the union
/// of B(r, d, c) over r. For A X the rank (r, c, d) computes, with f/pc columns on the left and f columns on
/// the right,
///
///   C stationary: A moves along col                 A stationary: X and Y move along col
///   for each col k: broadcast A(r; d, k) along col    all-to-all along col: X to full-width rows (.., col)
///     for each row r': receive B(r', d, k)            for each row r': receive B(r', d, c)
///       Y += A(r, r'; d, k) B(r', d, k)                 Y += A(r, r'; d, c) B(r', d, c)
///                                                     reduce-scatter Y along col over its columns
///   reduce-scatter (X partitioned by depth) or all-reduce (X replicated along depth) Y along depth
///
/// and for A^T X, with the sub-blocks B(r, d, c) of Y, from the rows r of X,
///
///   all-gather X along depth                        all-gather X along depth and col
///   for each col k: broadcast A(r; d, k) along col
///     for each row r':                                for each row r':
///       P(r') = A(r, r'; d, k)^T X(r)                   P(r') = A(r, r'; d, c)^T X(r)
///     reduce-scatter P along row to B(r, d, k)        reduce-scatter P along row to B(r, d, c)
///   all-gather Y along depth                        all-to-all along col, all-gather Y along depth
///
/// If row, depth and col cut X into whole rows, as vertex_rows does where these cut A, nothing moves along
/// col first: one reduce-scatter of Y along depth and col over its rows ends the product, or one all-gather
/// of X begins the product with A^T.
///
/// If A is not partitioned by col, there is one k and nothing moves along col. A^T X gathers X along depth
/// only if depth partitions it; else Y, if depth partitions A's columns. Along row, either whole sub-blocks
/// are sent stage by stage, each overlapped with a multiply, or only the rows that A's nonzero columns
/// reference, packed in one all-to-all that overlaps the multiply of the rank's own tile, or in one for each
/// chunk of A's rows. The rows of X for the first two chunks overlap the multiply of the rank's own tile,
/// those for later ones that of the two chunks before; a sum is sent after the last chunk that adds to it,
/// while the next one is multiplied. If nodes are given, needed rows cross between them once and are handed
/// on inside, see node_exchange.
///
/// What each rank receives for A^T X: with whole sub-blocks, even blocks and equally many nonzeros per rank,
/// as much as with a stored A^T, except that a replicated Y is gathered along depth, which costs half of its
/// all-reduce. With needed rows only, the nonempty columns of the tiles A(r', r), r' != r, where a stored
/// A^T exchanges their nonempty rows: equally many if the pattern is symmetric.
///
/// Sources: 1D, 1.5D, 2D and 3D: Tripathy, Yelick, Buluc (SC20), section IV; needed rows only: Mukhopadhyay
/// et al. (ICPP24); chunks: see needed_exchange.hpp. Sub-blocks instead of square blocks allow any mesh
/// shape.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/algebra/node_exchange.hpp"
#include "partita/algebra/product_plan.hpp"
#include "partita/base/function_reference.hpp"

namespace partita::algebra::detail {

/// Chunks of the rows of a rank's block of Y, and what to call when the rows of chunk j are complete.
struct completed_rows {
  const std::vector<std::vector<interval>>& chunks;
  base::function_reference<void(std::size_t)> done;
};

/// The products of this rank's blocks, and the communication that they overlap. `Stored`: the type of the
/// numbers of X; `Sum`: the type of the sums. Each is sent in its type.
template <class T, class Device, class Sum = T, class Stored = T>
class product_stages {
 public:
  /// kernel(t, part of tile t of A, the rows of X that it multiplies, beta, Y): Y = the product + beta Y.
  /// For A X, the part's columns index rows of X and its rows are Y's; for A^T X the other way round.
  using kernel_reference = base::function_reference<void(std::size_t, const local::csr_slice<T>&,
                                                         matrix_view<const Stored>, Sum, matrix_view<Sum>)>;

  product_stages(const spmm_blocks<Device>& blocks, std::shared_ptr<local::tile_analysis<T, Device>> a,
                 const spmm_options& options, entry_values values = entry_values::own);

  /// y = the product + beta y: for_stages(x, begin(y), beta, kernel), then finish(y), for this rank's
  /// blocks; beta must be 0 unless supports_beta().
  matrix_view<Sum> begin(matrix_view<Sum> y) { return sums_.empty() ? y : sums_.input(); }
  void finish(matrix_view<Sum> y) { sums_(y); }
  /// Calls the kernel for all parts of the tiles that this rank multiplies. `sums`: the Y of the kernels,
  /// from begin; nothing if they do not write it, and then no sums are sent.
  void for_stages(matrix_view<const Stored> x, std::optional<matrix_view<Sum>> sums, Sum beta,
                  kernel_reference kernel) {
    for_stages_of(arranged(x), sums, beta, kernel);
  }
  /// X in the layout in which it is multiplied, until the next call; and for_stages for such an X.
  matrix_view<const Stored> arranged(matrix_view<const Stored> x);
  void for_stages_of(matrix_view<const Stored> x, std::optional<matrix_view<Sum>> sums, Sum beta,
                     kernel_reference kernel, const completed_rows* completed = nullptr);
  /// Whether it can report which rows of this rank's sums are complete, by multiplying its last stages chunk
  /// by chunk; for completes_rows, whether these sums are also Y.
  bool completes_sums() const {
    return !plan_.sums_go() && plan_.options().chunks == 1 && local::chunk_bytes(queue()) == 0 &&
           (!memory::enqueues<Device> || plan_.groups().size() == 1);
  }
  bool completes_rows() const { return completes_sums() && sums_.in_place(); }
  /// Counts the entries of the last stages in each of these chunks, which a device's kernels need. Call it
  /// before for_stages_of with the same chunks. Synchronises with the device.
  void count_entries(const std::vector<std::vector<interval>>& chunks) {
    entries_.clear();
    for (std::size_t j = 0; memory::enqueues<Device> && j < chunks.size(); ++j)
      for_last_parts(0, chunks[j], [&](const product_stage&, const local::csr_slice<T>& part) {
        entries_.push_back(entries_of_part(queue(), part));
      });
  }
  /// The sums across ranks that finish computes.
  partial_sums<Sum, Device>& sums() { return sums_; }
  const partial_sums<Sum, Device>& sums() const { return sums_; }

  /// Whether the pass that multiplies can add products to y.
  bool supports_beta() const { return sums_.in_place() && !(going_ && !plan_.lists()); }
  const product_plan<T, Device>& plan() const { return plan_; }
  /// What this rank receives when X moves to the layout in which it is multiplied.
  traffic predicted_change() const { return change_ ? change_->predicted() : traffic{}; }
  const device_queue<Device>& queue() const { return plan_.blocks().m.queue(); }

 private:
  /// How many stages of the last block are multiplied chunk by chunk: the half whose rows stay, but on
  /// devices one, since each needs launches for every chunk.
  std::size_t last_stages() const {
    if (!plan_.lists() || !plan_.merges() || memory::enqueues<Device>)
      return plan_.stages().back().multiplies ? 1 : 2;
    return (plan_.steps_of_block() + 1) / 2;
  }
  /// f(stage, part) for the parts of these stages in `rows`.
  template <class F>
  void for_last_parts(std::size_t k, const std::vector<interval>& rows, const F& f) const {
    for (const product_stage& s : plan_.stages().last(last_stages()))
      for (const interval some : s.multiplies ? rows : std::vector<interval>())
        for (const local::csr_slice<T>& part : plan_.parts(k, s, some)) f(s, part);
  }
  template <class E>
  std::unique_ptr<row_traffic<E>> make_traffic() const {
    const auto& m = plan_.blocks().m;
    if (plan_.lists() == nullptr)
      return std::make_unique<whole_exchange<E, Device>>(m, plan_.groups(), plan_.width());
    const spmm_blocks<Device>& b = plan_.blocks();
    const row_code code{plan_.options().encoding,
                        b.rows_of_x().block(b.exchanged(plan_.options()).rows, m.at()).begin,
                        plan_.columns().begin};
    if (plan_.by_node()) return std::make_unique<node_exchange<E, Device>>(m, plan_.by_node(), b.flow, code);
    return std::make_unique<needed_exchange<E, Device>>(m, plan_.lists(), b.flow, plan_.merges(), code);
  }

  product_plan<T, Device> plan_;
  std::unique_ptr<redistribution<Stored, Device>> change_;  ///< of X to the layout in which it is multiplied
  buffer<Stored, Device> x_;
  std::unique_ptr<row_traffic<Stored>> coming_;
  std::unique_ptr<row_traffic<Sum>> going_;
  partial_sums<Sum, Device> sums_;
  std::vector<local_index> entries_;  ///< see count_entries
};

template <class T, class Device, class Sum, class Stored>
product_stages<T, Device, Sum, Stored>::product_stages(const spmm_blocks<Device>& b,
                                                       std::shared_ptr<local::tile_analysis<T, Device>> a,
                                                       const spmm_options& options, entry_values values)
    : plan_(b, std::move(a), options, values, b.sums_go() ? sizeof(Sum) : sizeof(Stored)) {
  const spmm_options chosen = plan_.options();
  const layout to = b.multiplied(chosen);
  if (!partition::same_blocks(b.m.shape(), b.dense, to)) {
    change_ = std::make_unique<redistribution<Stored, Device>>(b.m, b.rows_of_x(), b.features, b.dense, to);
    x_ = buffer<Stored, Device>(b.m.queue(), static_cast<std::size_t>(change_->new_block().size()));
  }
  sums_ = b.sums_go()
              ? partial_sums<Sum, Device>(b.m, b.cols, b.features, b.exchanged(chosen), b.dense)
              : partial_sums<Sum, Device>(b.m, b.rows, b.features, b.sparse, b.dense, b.stays(chosen));
  if (b.row_ranks() > 1 && b.sums_go()) going_ = make_traffic<Sum>();
  if (b.row_ranks() > 1 && !b.sums_go()) coming_ = make_traffic<Stored>();
}

template <class T, class Device, class Sum, class Stored>
matrix_view<const Stored> product_stages<T, Device, Sum, Stored>::arranged(matrix_view<const Stored> x) {
  if (!change_) return x;
  const matrix_view<Stored> changed = transfer::view_of(x_.data(), change_->new_block());
  (*change_)(x, changed);
  return changed;
}

template <class T, class Device, class Sum, class Stored>
void product_stages<T, Device, Sum, Stored>::for_stages_of(matrix_view<const Stored> x,
                                                           std::optional<matrix_view<Sum>> to_sums, Sum beta,
                                                           kernel_reference kernel,
                                                           const completed_rows* completed) {
  const bool sums_go = plan_.sums_go(), writes = to_sums.has_value();
  const matrix_view<Sum> sums = to_sums.value_or(matrix_view<Sum>());
  const std::size_t blocks = plan_.groups().size(), steps = plan_.steps_of_block();
  accumulator<Sum> sum(sums, beta);
  std::size_t started = 0;
  const auto start_rows = [&](std::size_t end) {  // of the steps before `end`
    for (; coming_ && started < std::min(end, blocks * steps); ++started) coming_->start(started, x);
  };
  if (coming_) start_rows(coming_->at_first());
  plan_.stream().start(0);
  for (std::size_t k = 0; k < blocks; ++k) {
    plan_.stream().arrive(k);
    if (k + 1 < blocks) plan_.stream().start(k + 1);
    const std::span<const product_stage> stages = plan_.stages();
    std::vector<matrix_view<const Stored>> rows_of_last;
    const std::size_t last = completed && k + 1 == blocks ? stages.size() - last_stages() : stages.size();
    for (const product_stage& s : stages) {
      const std::size_t n = k * steps + s.step;
      matrix_view<const Stored> rows = x;
      matrix_view<Sum> to = sums;
      if (sums_go && writes) to = s.travels ? going_->sums(n, s.tile) : plan_.own_rows(k, sums);
      if (!sums_go) rows = s.travels ? coming_->arrive(n, s.tile) : plan_.own_rows(k, x);
      if (s.travels && coming_) start_rows(n + 1 + coming_->ahead());
      if (&s >= stages.data() + last) rows_of_last.push_back(rows);
      if (!s.multiplies || !rows_of_last.empty()) continue;
      for (const local::csr_slice<T>& part : plan_.parts(k, s)) {
        if (sums_go) {
          const Sum of_first = s.travels ? Sum(0) : beta;
          kernel(s.tile, part, part.rows_of(rows), part.first_row > 0 ? Sum(1) : of_first, to);
        } else {
          const auto [factor, out] = sum.add(part);
          kernel(s.tile, part, rows, factor, out);
        }
      }
      if (sums_go && writes && s.travels) going_->leave(n, s.tile, sums);
    }
    auto known = entries_.begin();
    for (std::size_t j = 0; last < stages.size() && j < completed->chunks.size(); ++j) {
      for_last_parts(k, completed->chunks[j], [&](const product_stage& s, local::csr_slice<T> part) {
        const auto i = static_cast<std::size_t>(&s - stages.data());
        if (known != entries_.end()) part.entries.entries = *known++;
        kernel(s.tile, part, rows_of_last[i - last], k == 0 && i == 0 ? beta : Sum(1), part.rows_of(sums));
      });
      completed->done(j);
    }
    if (going_ && writes) going_->finish(k, sums);
  }
}

}  // namespace partita::algebra::detail
