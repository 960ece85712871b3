// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Relational graph attention: Busbridge et al. (arXiv:1904.05811), within relations.

#include "partita/graph/relation_matrices.hpp"
#include "partita/nn/conv/gat.hpp"
#include "partita/nn/conv/rgcn.hpp"

namespace partita::nn {

namespace detail {

/// The weights of relations side by side from those below each other, and gradients of these from theirs.
template <class T>
struct placed_weight {
  weights_side_by_side place;
  const T* from;
  constexpr T operator()(global_index i, global_index j, T) const { return place.value(from, i, j); }
};
template <class T>
struct placed_gradient {
  weights_side_by_side place;
  const T* from;
  constexpr T operator()(global_index i, global_index j, T) const { return place.adjoint(from, i, j); }
};
/// V((r, j), (r, h)) from the vectors of relations (R heads x width) of one end of edges: sources first, then
/// targets; 0 elsewhere.
template <class T>
struct relation_vectors {
  global_index heads, width;
  const T *source, *target;
  constexpr T operator()(global_index i, global_index h, T) const {
    const global_index vector = i / width, r = vector / heads, end = h % (2 * heads);
    if (h / (2 * heads) != r || end % heads != vector % heads) return T(0);
    return (end < heads ? source : target)[vector * width + i % width];
  }
};
/// The gradient of one end's vectors from that of V, `first` its first column.
template <class T>
struct collected_relation_vectors {
  global_index heads, width, relations, first;
  const T* from;
  constexpr T operator()(global_index vector, global_index j, T) const {
    const global_index column = vector / heads * 2 * heads + first + vector % heads;
    return from[(vector * width + j) * relations * 2 * heads + column];
  }
};

}  // namespace detail

/// Z = H W + b + sum over r of the attention of gat_conv over the in-edges of type r, with X_r = H W_r and
/// vectors of its own: alpha is a softmax within the relation. H (n x in), W (in x out); parameters: "W" (R
/// in x heads width), "asrc" and "adst" (R heads x width), those of relations below each other; "Wself"; "b"
/// (1 x out). Heads are concatenated or averaged. Weights of edges are not used.
///
/// All relations are one attention over R n vertices, v R + r being v under relation r. What travels: see
/// algebra::attention. Throws shape_error when the heads do not divide `out`. On sampled neighbours Z has the
/// rows of the block's targets, the first ones of H.
template <class T, class Device>
class rgat_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  rgat_conv(const graph::relation_matrices<T, Device>& relations, global_index in, global_index out,
            const builder<T, Device>& b, attention_heads heads = {})
      : rgat_conv(relations.apart(), relations.size(), relations.like().row_blocking(),
                  relations.like().col_blocking(), in, out, b, heads) {}
  /// On a block of sampled neighbours on a mesh of one rank, with its relations apart (R targets x R sources;
  /// sampling::apart). Local.
  rgat_conv(const sparse<T, dynamic_layout, Device>& block, global_index relations, global_index in,
            global_index out, const builder<T, Device>& b, attention_heads heads = {})
      : rgat_conv(block, relations,
                  blocking::even(block.shape().rows / relations, b.mesh().shape(), nesting::rows),
                  blocking::even(block.shape().cols / relations, b.mesh().shape(), nesting::rows), in, out, b,
                  heads) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    transform_indexed(weights_, weights_, detail::placed_weight<T>{beside_, weight_.value().local().data});
    transform_indexed(vectors_, vectors_,
                      detail::relation_vectors<T>{shape_.heads, shape_.width, source_.value().local().data,
                                                  target_.value().local().data});
    gemm(h, weights_, x_);        // (n, R heads width)
    gemm(x_, vectors_, scores_);  // (n, R 2 heads)
    const auto x = apart(x_), scores = apart(scores_);
    auto y = apart(y_);
    attention_->forward(x, scores, y, mask(p));            // (R n, heads width)
    gemm(targets_(h, z.row_blocking()), own_.value(), z);  // (n, out)
    gemm(y_, sums_, z, {.beta = 1, .bias = &bias_.value()});
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(targets_(h, dz.row_blocking()), dz, own_.gradient(),
                                  &bias_.gradient());  // (in, out), (1, out)
    gemm(dz, transposed(sums_), y_);                   // (n, R heads width)
    const auto x = apart(x_), dy = apart(y_);
    auto dx = apart(dx_), dscores = apart(dscores_);
    attention_->backward(x, dy, dx, dscores);                        // (R n, heads width)
    algebra::weight_gradient_part(x_, dscores_, vectors_gradient_);  // (R heads width, R 2 heads)
    collect(source_, 0);
    collect(target_, shape_.heads);
    gemm(dscores_, transposed(vectors_), dx_, T(1));           // (n, R heads width)
    algebra::weight_gradient_part(h, dx_, weights_gradient_);  // (in, R heads width)
    transform_indexed(weight_.gradient(), weight_.gradient(),
                      detail::placed_gradient<T>{beside_, weights_gradient_.local().data});
    if (dh == nullptr) return;
    gemm(dx_, transposed(weights_), *dh);  // (n, in)
    matrix of_targets = first_rows(*dh, dz.row_blocking());
    gemm(dz, transposed(own_.value()), of_targets, T(1));
  }

  global_index width() const override { return bias_.shape().cols; }

 private:
  using weight = dense<T, replicated, Device>;

  rgat_conv(const sparse<T, dynamic_layout, Device>& apart, global_index relations, const blocking& targets,
            const blocking& sources, global_index in, global_index out, const builder<T, Device>& b,
            attention_heads heads)
      : layer<T, Device>(b),
        count_(relations),
        shape_{.heads = heads.count, .width = heads.width_of(out)},
        beside_{in, shape_.columns(), count_},
        dropout_(b.options().dropout, b, b.next_attention()),
        weight_(b.glorot("W", {count_ * in, shape_.columns()})),
        source_(b.glorot("asrc", {count_ * shape_.heads, shape_.width})),
        target_(b.glorot("adst", {count_ * shape_.heads, shape_.width})),
        own_(b.glorot("Wself", {in, out})),
        bias_(b.filled("b", {1, out})),
        attention_(this->here().template plan<algebra::attention<T, Device>>(
            {}, apart, shape_, b.options().products, b.options().coefficients)),
        weights_(b.mesh(), matrix_shape{in, columns()}),
        weights_gradient_(b.mesh(), weights_.shape()),
        vectors_(b.mesh(), matrix_shape{columns(), count_ * 2 * shape_.heads}),
        vectors_gradient_(b.mesh(), vectors_.shape()),
        sums_(generate<replicated, T>(b.mesh(), {columns(), out},
                                      [w = shape_.width, heads](global_index j, global_index o) {
                                        if (!heads.averaged) return j % (heads.count * w) == o ? T(1) : T(0);
                                        return j % w == o ? T(1) / static_cast<T>(heads.count) : T(0);
                                      })),
        x_(b.rows(sources, columns())),
        y_(b.rows(targets, columns())),
        dx_(b.rows(sources, columns())),
        scores_(b.rows(sources, count_ * 2 * shape_.heads)),
        dscores_(b.rows(sources, count_ * 2 * shape_.heads)) {
    source_.is_summed_as(vectors_.shape().rows * vectors_.shape().cols);  // both, with zeros
    target_.is_summed_as({});
    if (!(targets == sources)) this->here().plans()->set_rows(targets);
  }

  global_index columns() const { return count_ * shape_.columns(); }
  /// The same memory, a row for each vertex and relation.
  matrix apart(matrix& of) const {
    const global_index width = of.shape().cols / count_;
    return matrix::view(of.mesh(), of.row_blocking().stacked(count_), this->here().columns(width),
                        of.values());
  }
  /// That of the coefficients, whose rows are vertices under relations.
  dropout_mask mask(const pass& p) {
    dropout_mask found = dropout_.mask(p);
    if (found.probability == 0 || p.vertices == nullptr) return found;
    const auto& queue = x_.mesh().queue();
    std::vector<global_index> vertices(static_cast<std::size_t>(x_.shape().rows)), names;
    copy(queue, std::span(p.vertices, vertices.size()), std::span(vertices));
    for (const global_index v : vertices)
      for (global_index r = 0; r < count_; ++r) names.push_back(v * count_ + r);
    names_ = buffer<global_index, Device>(queue, names.size());
    copy(queue, std::span<const global_index>(names), names_.span());
    found.vertices = names_.data();
    return found;
  }
  void collect(parameter<T, Device>& to, global_index first) {
    transform_indexed(to.gradient(), to.gradient(),
                      detail::collected_relation_vectors<T>{shape_.heads, shape_.width, count_, first,
                                                            vectors_gradient_.local().data});
  }

  global_index count_;
  algebra::attention_shape shape_;
  detail::weights_side_by_side beside_;
  dropout dropout_;  ///< of the coefficients
  parameter<T, Device>&weight_, &source_, &target_, &own_, &bias_;
  std::shared_ptr<algebra::attention<T, Device>> attention_;
  weight weights_, weights_gradient_, vectors_, vectors_gradient_, sums_;
  matrix x_, y_, dx_, scores_, dscores_;
  buffer<global_index, Device> names_;  ///< of vertices under relations
  algebra::first_rows_operand<T, Device> targets_;
};

}  // namespace partita::nn
