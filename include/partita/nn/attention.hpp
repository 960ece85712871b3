#pragma once
/// Attention over the in-edges of every vertex, under any policy. No array of edges and features exists
/// anywhere.

#include "partita/algebra/edge_schedule.hpp"
#include "partita/nn/attention_coefficients.hpp"
#include "partita/transfer/edge_redistribution.hpp"
#include "partita/transfer/layout_change.hpp"

namespace partita {

/// What an attention is like.
struct attention_shape {
  local_index heads = 1;
  local_index width = 1;  ///< of X under one head
  bool averaged = false;  ///< all heads have the same columns, and the mean of their coefficients counts
  int hops = 1;           ///< with the same coefficients
  double slope = 0.2;     ///< of leaky

  global_index columns() const { return averaged ? width : global_index{heads} * width; }
  local_index values_of_edge() const { return averaged ? 1 : heads; }
};

/// Y = Z_K, Z_k(v, j) = sum over u->v of alpha_uv Z_(k-1)(u, j), Z_0 = X (n x w all); alpha as in
/// attention_coefficients: of the head of column j where heads lie side by side (w = heads*width), or the
/// mean over the heads (w = width). d alpha_uv = sum over k and the head's columns of dZ_k(v, j) Z_(k-1)(u,
/// j).
///
/// Every rank of the mesh must construct it and call its functions. What travels forward: X to the policy's
/// layout and Y back, K products with A in place, and the scalars; coefficients are computed where they are
/// used, in the pass of the first product. Backward: dY and dX likewise, K transposed products, scalars, and
/// for d alpha what coefficient_gradient says, by whichever way the busiest rank receives less. Sources:
/// Velickovic et al. (ICLR 2018), eq. 3 and 4; several hops with the same coefficients: NeutronTP (VLDB
/// 2025), section 4.1, here with their exact gradient.
template <class T, class Place>
class attention {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// `a`: the pattern as the policy cuts it. Throws error when rows are to be gathered for more than one hop.
  attention(const sparse<T, dynamic_layout, Place>& a, const attention_shape& shape,
            spmm_options options = {}, coefficient_gradient form = coefficient_gradient::automatic)
      : attention(a, in_edges<T, Place>(a), shape, options, form) {}

  /// y from x (both n/P x w) and the scalars (n/P x 2 heads).
  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask = {}) {
    coefficients_.forward(scores, mask);
    matrix_view<const T> now = enter(x, states_[0]);
    for (std::size_t k = 1; k <= hops(); ++k) {
      const matrix_view<T> next = inside(k) ? block(states_[k]) : y.local();
      if (k == 1)
        products_.apply_and_multiply(
            coefficients_.values(),
            [&](std::size_t t, const auto& part) { return coefficients_.of(t, part); }, now, next);
      else
        products_.multiply(coefficients_.values(), now, next);
      now = next;
    }
    if (change_.travels()) change_.leave(now, y.local());  // (n/P, w)
  }

  /// dx, and the gradient of the scalars, from dy and the x of the last forward.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) {
    coefficients_.transpose();
    matrix_view<const T> now = enter(dy, gradients_[0]);
    for (std::size_t k = hops(); k > 0; --k) {
      const T beta = k == hops() ? T(0) : T(1);
      if (transfer_) products_.dots(now, state(k - 1, x), beta, coefficients_.values());
      const matrix_view<T> next = inside(k - 1) ? block(gradients_[(hops() + 1 - k) % 2]) : dx.local();
      if (k == hops())
        detail::apply_and_multiply_edges(
            transposed_product_, products_.slice(), coefficients_.transposed_values(),
            [&](std::size_t t, const auto& part) { return coefficients_.of_transposed(t, part); }, now, next);
      else
        detail::multiply_edges(transposed_product_, products_.slice(), coefficients_.transposed_values(), now,
                               next);
      now = next;
    }
    if (change_.travels()) change_.leave(now, dx.local());  // (n/P, w)
    if (transfer_)
      (*transfer_)(coefficients_.values(), coefficients_.own_gradient());
    else
      gathered_->dots(x, dy, coefficients_.own_gradient());
    coefficients_.backward(dscores);  // (n/P, 2 heads)
  }

  const blocking& features() const { return features_; }
  /// What was chosen for the gradient of the coefficients.
  coefficient_gradient form() const {
    return transfer_ ? coefficient_gradient::edges : coefficient_gradient::rows;
  }

  /// What this rank receives in one forward and one backward, in closed form.
  volume predicted() const {
    return predicted_products() +
           (transfer_ ? predicted_edges(*transfer_) : gathered_->rows.predicted_gather(features_.size()));
  }

 private:
  /// The rows of X that in-edges of own vertices name, for dot products of whole rows.
  struct gathered_rows {
    head_slice slice;
    halo<T, Place> rows;
    tiles<T, Place> edges;  ///< a pattern: one tile without values
    buffer<T, Place> table;

    void dots(const matrix& x, const matrix& y, T* values) {
      const matrix_view<T> all{table.data(), edges.widths[0], x.local().cols, x.local().cols};
      rows.gather(x.local(), all);  // (own + needed, w)
      edges.for_parts(0, [&](const tile_part<T>& part) {
        kernels<Place>::edge_dot(x.mesh().queue(), part.entries, slice, part.rows_of(y.local()), all, T(0),
                                 part.values_in(values, slice.heads));
      });
    }
  };

  attention(const sparse<T, dynamic_layout, Place>& a, const in_edges<T, Place>& rows,
            const attention_shape& shape, spmm_options options, coefficient_gradient form)
      : mesh_(a.mesh()),
        features_(blocking::even(shape.columns(), a.mesh().shape(), nesting::cols)),
        products_(mesh_, a.local(), a.row_blocking(), a.col_blocking(), features_, a.layout(),
                  multiplied_layout(a, vertex_rows), shape.values_of_edge(), detail::edge_heads::own,
                  options.rows),
        coefficients_(a, rows, shape.heads, shape.averaged, shape.slope, products_.first_head(),
                      products_.slice().heads),
        transposed_product_(mesh_, transposed(a).local(), a.col_blocking(), a.row_blocking(), features_,
                            a.layout(), multiplied_layout(a, vertex_rows),
                            {stationary::sparse_stays, options.rows}, detail::entry_values::given),
        change_(mesh_, a.col_blocking(), a.row_blocking(), features_, vertex_rows,
                multiplied_layout(a, vertex_rows)),
        states_(static_cast<std::size_t>(shape.hops) + 1) {
    const local_index heads = shape.values_of_edge();
    make_blocks(block_of(a.row_blocking(), features_, multiplied_layout(a, vertex_rows), mesh_.at()));
    edge_redistribution<T, Place> transfer(a, rows, features_, heads, products_.summed_axes());
    if (prefers_edges(transfer, static_cast<global_index>(rows.needed().size()), form)) {
      transfer_.emplace(std::move(transfer));
      return;
    }
    halo<T, Place> h = rows.make_halo();
    tiles<T, Place> edges = rows.own_rows(h);
    buffer<T, Place> table(
        mesh_.queue(), static_cast<std::size_t>(edges.widths[0]) * static_cast<std::size_t>(shape.columns()));
    gathered_.emplace(
        gathered_rows{{heads, shape.width, 0}, std::move(h), std::move(edges), std::move(table)});
  }

  void make_blocks(const rectangle& inner) {
    rows_ = narrow(inner.rows.size(), "the rows of a dense block");
    cols_ = narrow(inner.cols.size(), "the columns of a dense block");
    const auto make_block = [&] {
      return buffer<T, Place>(mesh_.queue(), static_cast<std::size_t>(inner.size()));
    };
    for (std::size_t k = 0; k <= hops(); ++k)
      if (inside(k)) states_[k] = make_block();
    for (auto& b : gradients_)
      if (change_.travels() || hops() > 1) b = make_block();
  }

  bool prefers_edges(const edge_redistribution<T, Place>& transfer, global_index needed,
                     coefficient_gradient form) const {
    if (hops() > 1 && form == coefficient_gradient::rows)
      throw error("an attention of several hops cannot gather rows for the gradient of its coefficients");
    if (hops() > 1 || form != coefficient_gradient::automatic) return form != coefficient_gradient::rows;
    const global_index products = predicted_products().elements;
    global_index elements[] = {products + predicted_edges(transfer).elements,
                               products + needed * features_.size()};
    mesh_.world().all_reduce(elements, reduction::max);
    return elements[0] <= elements[1];
  }
  /// All but what is for the gradient of the coefficients, and that by edges.
  volume predicted_products() const {
    return coefficients_.predicted() + 2 * change_.predicted() +
           static_cast<global_index>(hops()) *
               (products_.predicted_multiply() + transposed_product_.predicted());
  }
  volume predicted_edges(const edge_redistribution<T, Place>& transfer) const {
    return static_cast<global_index>(hops()) * products_.predicted_dots() + transfer.predicted();
  }

  std::size_t hops() const { return states_.size() - 1; }
  /// Whether Z_k lies in a block of its own: all do but X and Y where nothing travels.
  bool inside(std::size_t k) const { return change_.travels() || (k > 0 && k < hops()); }
  matrix_view<T> block(buffer<T, Place>& b) const { return {b.data(), rows_, cols_, cols_}; }
  matrix_view<const T> state(std::size_t k, const matrix& x) {
    return inside(k) ? matrix_view<const T>(block(states_[k])) : x.local();
  }
  /// x in the policy's layout, in b where it has to go there.
  matrix_view<const T> enter(const matrix& x, buffer<T, Place>& b) {
    if (!change_.travels()) return x.local();
    change_.enter(x.local(), block(b));
    return block(b);
  }

  mesh<Place> mesh_;
  blocking features_;
  detail::edge_schedule<T, Place> products_;
  attention_coefficients<T, Place> coefficients_;
  detail::spmm_schedule<T, Place> transposed_product_;
  layout_change<T, Place> change_;
  local_index rows_ = 0, cols_ = 0;
  std::vector<buffer<T, Place>> states_;  ///< Z_0 ... Z_K under the policy, where they need a block
  std::array<buffer<T, Place>, 2> gradients_;
  std::optional<edge_redistribution<T, Place>> transfer_;
  std::optional<gathered_rows> gathered_;
};

}  // namespace partita
