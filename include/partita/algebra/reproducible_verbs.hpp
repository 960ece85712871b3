// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The verbs of a reproducible mesh, as an object found through its queue: a program without such a mesh does
/// not compile them.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "partita/algebra/coefficient_gradient.hpp"
#include "partita/algebra/dropout.hpp"
#include "partita/algebra/edge_matrix.hpp"
#include "partita/local/message_function.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/matrix/sparse.hpp"

namespace partita {

struct spmm_options;

namespace algebra {

struct score_shape;

namespace detail {

template <class Device>
struct spmm_blocks;
template <class T, class Stored>
class product;
template <class T, class Device>
class edge_schedule;

}  // namespace detail

/// The block of a matrix that a rank adds to a sum over ranks.
template <class T, class Device>
struct addends {
  partita::mesh<Device> mesh;
  axis_set axes;  ///< along which other ranks hold other blocks
  matrix_view<const T> block;
  interval columns;
  matrix_shape shape;  ///< of the matrix

  addends(partita::mesh<Device> m, axis_set of, matrix_view<const T> values, interval cols, matrix_shape all)
      : mesh(std::move(m)), axes(of), block(values), columns(cols), shape(all) {}
  template <layout L>
  addends(const dense<T, L, Device>& x)
      : mesh(x.mesh()), axes(x.layout().used()), block(x.local()), columns(x.col_range()), shape(x.shape()) {}
};

/// The gradient of a maximum over neighbours; see max_aggregation.
template <class T, class Device>
class max_gradient {
 public:
  virtual ~max_gradient() = default;
  /// dh from dy: sums the winners' rows of the table over all ranks. Collective over the mesh.
  virtual void operator()(const local::csr_slices<T>& rows, matrix_view<const local_index> winners,
                          matrix_view<const T> dy, matrix_view<T> dh) = 0;
  virtual traffic predicted(global_index width) const = 0;
};

/// Sums of rows added by lists, as in gather_rows_plan; see exact_row_sums.
template <class T, class Device>
class list_sums {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  virtual ~list_sums() = default;
  virtual void assign(std::span<const std::vector<global_index>> lists) = 0;
  virtual void add(std::size_t list, const matrix& g) = 0;
  virtual const std::vector<global_index>& touched_rows() = 0;
  virtual void take(matrix& g) = 0;
  virtual traffic predicted() = 0;
};

/// An algorithm for an attention, see attention.
template <class T, class Device>
class attention_way {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  virtual ~attention_way() = default;
  virtual void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask) = 0;
  virtual void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) = 0;
  virtual coefficient_gradient form() const = 0;
  virtual traffic predicted() const = 0;
  virtual traffic predicted_forward() const = 0;
  virtual global_index coefficients() const = 0;
};

/// A part of a tile, with the operands of its messages and their gradients.
template <class T>
struct message_part {
  std::size_t tile = 0;
  local::csr_slice<T> part;
  local::message_operands<T> of;
  local::message_gradient<T> gradient;
};

/// Sums over messages, as in message_plan and message_scores_plan, over this rank's parts and all others.
/// Outputs are numbered as in local::message_function: with slopes its own, otherwise only the messages,
/// times the weights of rows. Collective over the mesh.
template <class T, class Device>
class reproducible_messages {
 public:
  using function = local::message_function<T>;
  using parts = std::span<const message_part<T>>;

  virtual ~reproducible_messages() = default;
  /// Call before the sums of these parts, with slopes or messages.
  virtual void begin(parts all, const function& f, bool slopes) = 0;
  /// z += the sums at the rows of the pattern; x += the sums of slopes by source, at its columns, both in the
  /// layout of operands; values += the sums over the columns of heads, for all entries; gradient (K x w) =
  /// the sums for parameters over all entries.
  virtual void add_rows(parts all, const function& f, std::size_t output, matrix_view<T> z) = 0;
  virtual void add_columns(parts all, const function& f, matrix_view<T> x) = 0;
  virtual void add_heads(parts all, const function& f, std::size_t output, const local::head_slice& s,
                         std::span<T> values) = 0;
  virtual void add_parameters(parts all, const function& f, matrix_view<T> gradient) = 0;
  /// Like the kernel message_largest, for this rank's parts.
  virtual void choose(parts all, const function& f, T sign, matrix_view<T> best,
                      matrix_view<local_index> winners) = 0;

  virtual traffic predicted_begin(global_index outputs) const = 0;
  virtual traffic predicted_rows() const = 0;
  virtual traffic predicted_columns() const = 0;
  virtual traffic predicted_heads(local_index heads) const = 0;
  virtual traffic predicted_parameters(global_index elements) const = 0;
};

/// Products with edge values, of blocks in a layout that the pattern multiplies. Collective over the
/// mesh.
template <class T, class Device>
class edge_products {
 public:
  using edges = edge_matrix<T, Device>;
  /// Rows of 1 if null.
  using operand = std::optional<matrix_view<const T>>;

  virtual ~edge_products() = default;
  /// y = e x, like edge_spmm_plan.
  virtual void multiply(const edges& e, const operand& x, matrix_view<T> y) = 0;
  /// x = e^T y, like transposed_edge_spmm_plan.
  virtual void multiply_transposed(const edges& e, const operand& y, matrix_view<T> x) = 0;
  /// e = beta e + pattern o (y x^T), like sddmm_plan.
  virtual void sample(matrix_view<const T> y, matrix_view<const T> x, edges& e, T beta) = 0;

  /// What this rank receives in each of these.
  virtual traffic predicted_multiply(bool has_operand) const = 0;
  virtual traffic predicted_transposed(bool has_operand) const = 0;
  virtual traffic predicted_sample() const = 0;
};

/// Sums with the same bits under every arrangement. Members that sum are collective over mesh::whole. What
/// travels in each, besides what its verb says: predicted_sum of its elements instead of an all-reduce.
template <class T, class Device>
class reproducible_verbs {
 public:
  using mesh = partita::mesh<Device>;
  using vertex_block = dense<T, vertex_rows, Device>;
  using weights = dense<T, replicated, Device>;

  virtual ~reproducible_verbs() = default;

  /// The sum of all elements.
  virtual double sum(const addends<T, Device>& x) const = 0;
  /// The column sums, in `sums` (f).
  virtual void column_sums(const addends<T, Device>& x, std::span<T> sums) const = 0;
  /// dw = X^T G. X is dense, or given as the slices of its transpose.
  virtual void inner(const addends<T, Device>& x, const addends<T, Device>& g, weights& dw) const = 0;
  virtual void inner(const local::csr_slices<T>& x, const vertex_block& g, weights& dw) const = 0;
  /// Like the kernel cross_entropy, summed over the ranks.
  virtual double cross_entropy(const vertex_block& logits, const local_index* labels, T scale,
                               vertex_block& gradient) const = 0;
  /// sums(v, h) = the sum of e(v, u, h) over the entries of row v, for the rows of this rank's tiles,
  /// including the other ranks that share them.
  virtual void entry_row_sums(const edge_matrix<T, Device>& e, matrix_view<T> sums) const = 0;
  /// What this rank receives for sums of `elements` elements over the ranks along `axes`.
  virtual traffic predicted_sum(const mesh& m, axis_set axes, global_index elements) const = 0;

  /// `terms`: the largest number of terms in an element of Y.
  virtual std::unique_ptr<detail::product<T, T>> make_product(
      const detail::spmm_blocks<Device>& blocks, std::shared_ptr<local::tile_analysis<T, Device>> a,
      const spmm_options& options, global_index terms) const = 0;
  /// `sources`, `needed`: from the halo of a table of rows; `terms` as above.
  virtual std::unique_ptr<max_gradient<T, Device>> make_max_gradient(const mesh& m, const blocking& sources,
                                                                     const std::vector<global_index>& needed,
                                                                     global_index terms) const = 0;
  virtual std::unique_ptr<list_sums<T, Device>> make_list_sums(
      const dense<T, dynamic_layout, Device>& x) const = 0;
  virtual std::unique_ptr<attention_way<T, Device>> make_attention(const sparse<T, dynamic_layout, Device>& a,
                                                                   const score_shape& shape,
                                                                   local_index head_width,
                                                                   int hops) const = 0;
  /// For messages along the entries of a pattern, for operands in layout `l` whose rows are needed in layout
  /// `spread`.
  virtual std::unique_ptr<reproducible_messages<T, Device>> make_messages(
      const sparse<T, dynamic_layout, Device>& pattern, layout l, layout spread,
      const blocking& features) const = 0;
  /// `rows_come`: the exchange of X's rows to the tiles.
  virtual std::unique_ptr<edge_products<T, Device>> make_edge_products(
      std::shared_ptr<detail::edge_schedule<T, Device>> rows_come) const = 0;
};

/// The verbs of a reproducible mesh; null for any other.
template <class T, class Device>
const reproducible_verbs<T, Device>* reproducible_verbs_of(const mesh<Device>& m) {
  return m.queue().template find<reproducible_verbs<T, Device>>();
}

/// What this rank receives for a sum of this number of elements over all ranks.
template <class T, class Device>
traffic predicted_sum(const mesh<Device>& m, global_index elements) {
  if (const auto* const verbs = reproducible_verbs_of<T>(m))
    return verbs->predicted_sum(m, partition::every_axis, elements);
  comm::collective op;
  op.kind = operation::all_reduce;
  op.count = elements;
  return received(op, m.rank(), m.size());
}

/// parts = their sums over the ranks, available once the request has been waited for. Some verbs give this
/// rank's part of a sum (weight_gradient_part, column_sums_part, and results on mesh::alone); on a
/// reproducible mesh they give the whole sum. Collective over the mesh. What travels: an all-reduce, or
/// nothing on a reproducible mesh.
template <class Device, class Values>
[[nodiscard]] request start_sum_of_parts(const mesh<Device>& m, Values&& parts) {
  if (m.size() == 1 || m.reproducible()) return {};
  return m.along(partition::every_axis).start_all_reduce(parts);
}
/// The same, blocking.
template <class Device, class Values>
void sum_parts(const mesh<Device>& m, Values&& parts) {
  start_sum_of_parts(m, parts).wait();
}
/// The same for numbers in host memory.
template <class Device, class Values>
void sum_host_parts(const mesh<Device>& m, Values&& parts) {
  if (m.size() > 1 && !m.reproducible()) m.world().all_reduce(parts);
}
/// What this rank receives for this number of elements, in sum_parts and in the verb that gives the parts.
template <class T, class Device>
traffic predicted_sum_of_parts(const mesh<Device>& m, global_index elements) {
  return m.reproducible() ? traffic{} : predicted_sum<T>(m, elements);
}
template <class T, class Device>
traffic predicted_part(const mesh<Device>& m, global_index elements) {
  return m.reproducible() ? predicted_sum<T>(m, elements) : traffic{};
}

}  // namespace algebra

}  // namespace partita
