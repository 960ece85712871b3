// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores of pairs of vertices from the rows that a model computes for them.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partita/algebra/edge_rows.hpp"
#include "partita/algebra/edge_verbs.hpp"
#include "partita/algebra/reductions.hpp"
#include "partita/algebra/row_products.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/base/random.hpp"
#include "partita/nn/builder.hpp"

namespace partita::nn {

/// How the rows h_u and h_v become the score of the link u -> v, the same as that of v -> u.
enum class link_decoding : std::uint8_t {
  dot,       ///< h_u . h_v
  distmult,  ///< the sum over j of d_j h_uj h_vj, d learned, 1 at first
  mlp        ///< relu((h_u o h_v) W_1 + b_1) W_2 + b_2, inner width that of the rows; o: element-wise product
};

namespace detail {

/// Scores of the entries (v, u) of one pattern, and the gradients of the rows and the decoder's parameters.
/// Collective over the mesh: all members.
template <class T, class Device>
class pair_scores {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using edges = edge_matrix<T, Device>;
  using weights = std::vector<const dense<T, replicated, Device>*>;
  using gradients = std::vector<dense<T, replicated, Device>>;

  virtual ~pair_scores() = default;
  virtual void forward(const matrix& h, const weights& w, edges& scores) = 0;
  virtual void backward(const edges& ds, const weights& w, gradients& dw, matrix& dh) = 0;
  virtual traffic predicted() const = 0;
};

/// g where h > 0, else 0.
struct where_positive {
  template <class T>
  constexpr T operator()(T g, T h) const {
    return h > T(0) ? g : T(0);
  }
};

/// Sampled products of H D and H in the layout in which the pattern is multiplied; without D where `learned`
/// is false.
template <class T, class Device>
class diagonal_scores final : public pair_scores<T, Device> {
  using above = pair_scores<T, Device>;

 public:
  using typename above::edges;
  using typename above::gradients;
  using typename above::matrix;
  using typename above::weights;

  diagonal_scores(const sparse<T, dynamic_layout, Device>& pairs, const matrix& h, bool learned)
      : learned_(learned),
        layout_(algebra::multiplied_layout(pairs, vertex_rows)),
        come_(pairs.mesh(), h.row_blocking(), h.col_blocking(), vertex_rows, layout_),
        go_(pairs.mesh(), h.row_blocking(), h.col_blocking(), layout_, vertex_rows),
        x_(rows(h)),
        y_(rows(h)),
        dx_(rows(h)),
        dy_(rows(h)),
        spmm_(pairs, layout_, h.col_blocking()),
        transposed_(spmm_),
        sddmm_(spmm_) {}

  void forward(const matrix& h, const weights& w, edges& scores) override {
    come_(h, x_);
    if (learned_)
      transform_columns(x_, *w[0], y_, std::multiplies<>{});
    else
      copy(x_, y_);
    sddmm_(y_, x_, scores);
  }
  void backward(const edges& ds, const weights& w, gradients& dw, matrix& dh) override {
    spmm_(ds, x_, dy_);
    transposed_(ds, y_, dx_);
    if (learned_) {
      zip(dy_, x_, y_, std::multiplies<>{});
      column_sums(y_, dw[0]);
      transform_columns(dy_, *w[0], dy_, std::multiplies<>{});
    }
    zip(dx_, dy_, dx_, std::plus<>{});
    go_(dx_, dh);
  }
  traffic predicted() const override {
    traffic all = come_.predicted() + go_.predicted() + sddmm_.predicted() + spmm_.predicted() +
                  transposed_.predicted();
    if (learned_) all += x_.mesh().all_reduced(layout_.used(), x_.shape().cols);
    return all;
  }

 private:
  using block = dense<T, dynamic_layout, Device>;
  block rows(const matrix& h) const { return {h.mesh(), layout_, h.row_blocking(), h.col_blocking()}; }

  bool learned_;
  layout layout_;
  redistribution<T, Device> come_, go_;
  block x_, y_, dx_, dy_;
  edge_spmm_plan<T, Device> spmm_;
  algebra::transposed_edge_spmm_plan<T, Device> transposed_;
  sddmm_plan<T, Device> sddmm_;
};

/// The network on the rows of both ends of each pair (entries x k).
template <class T, class Device>
class mlp_scores final : public pair_scores<T, Device> {
  using above = pair_scores<T, Device>;

 public:
  using typename above::edges;
  using typename above::gradients;
  using typename above::matrix;
  using typename above::weights;

  mlp_scores(const sparse<T, dynamic_layout, Device>& pairs, const matrix& h)
      : from_targets_(pairs, algebra::edge_end::target, h),
        from_sources_(pairs, algebra::edge_end::source, h),
        to_targets_(pairs, algebra::edge_end::target, h),
        to_sources_(pairs, algebra::edge_end::source, h),
        targets_(pairs, columns(h)),
        sources_(pairs, columns(h)),
        products_(pairs, columns(h)),
        hidden_(pairs, columns(h)),
        work_(pairs, columns(h)),
        of_sources_(h.mesh(), h.row_blocking(), h.col_blocking()) {}

  void forward(const matrix& h, const weights& w, edges& scores) override {
    from_targets_(h, targets_);
    from_sources_(h, sources_);
    zip(targets_, sources_, products_, std::multiplies<>{});
    gemm(products_, *w[0], hidden_, w[1], true);  // (entries, k)
    gemm(hidden_, *w[2], scores, w[3]);           // (entries, 1)
  }
  void backward(const edges& ds, const weights& w, gradients& dw, matrix& dh) override {
    algebra::weight_gradient(hidden_, ds, dw[2]);
    column_sums(ds, dw[3]);
    gemm(ds, transposed(*w[2]), work_);
    zip(work_, hidden_, work_, where_positive{});
    algebra::weight_gradient(products_, work_, dw[0]);
    column_sums(work_, dw[1]);
    gemm(work_, transposed(*w[0]), products_);  // the gradient of the products
    zip(products_, sources_, sources_, std::multiplies<>{});
    to_targets_(sources_, dh);
    zip(products_, targets_, targets_, std::multiplies<>{});
    to_sources_(targets_, of_sources_);
    zip(dh, of_sources_, dh, std::plus<>{});
  }
  traffic predicted() const override {
    const auto k = of_sources_.shape().cols;
    const auto& pairs = targets_.pattern();
    traffic all = from_targets_.predicted() + from_sources_.predicted() + to_targets_.predicted() +
                  to_sources_.predicted();
    for (const global_index count : {k * k, k, k, global_index{1}})
      all += pairs.mesh().all_reduced(pairs.layout().used(), count);
    return all;
  }

 private:
  static local_index columns(const matrix& h) { return base::to_local(h.shape().cols, "the columns of H"); }

  algebra::edge_gather_plan<T, Device> from_targets_, from_sources_;
  algebra::edge_scatter_plan<T, Device> to_targets_, to_sources_;
  edges targets_, sources_, products_, hidden_, work_;
  matrix of_sources_;
};

}  // namespace detail

/// A decoder of links, whose parameters belong to a model. From H (n x k), or from rows that are given, it
/// computes the scores of the entries (v, u) of a pattern of pairs, and their gradients, under every policy.
///
/// Collective over the mesh: set_pairs, forward, backward, and score_rows and score_all on the mesh of their
/// operands. What travels: for dot and distmult, H to the layout in which the pairs are multiplied, its
/// gradient back, and what sddmm_plan, edge_spmm_plan and transposed_edge_spmm_plan send; for mlp, what
/// edge_gather_plan and edge_scatter_plan send; and all-reduces of the gradients of the parameters. Throws
/// what these throw; not for reproducible meshes.
///
/// Source: DistMult: Yang et al. (ICLR 2015), eq. 2; the network on products: Hu et al. (NeurIPS 2020), OGB.
template <class T, class Device>
class link_decoder {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using edges = edge_matrix<T, Device>;

  /// For rows of `width` columns. Adds its parameters to those of a model; their values depend on the seed,
  /// and not on the number of ranks.
  link_decoder(link_decoding how, global_index width, nn::parameters<T, Device>& of, std::uint64_t seed);

  /// Sets the pattern whose entries are scored from now on, for matrices placed like h.
  void set_pairs(const sparse<T, dynamic_layout, Device>& pairs, const matrix& h) {
    scores_.emplace(pairs, 1);
    if (how_ == link_decoding::mlp)
      pairs_ = std::make_unique<detail::mlp_scores<T, Device>>(pairs, h);
    else
      pairs_ =
          std::make_unique<detail::diagonal_scores<T, Device>>(pairs, h, how_ == link_decoding::distmult);
  }
  /// The scores (entries x 1). Valid until the next call.
  const edges& forward(const matrix& h) {
    require_pairs();
    pairs_->forward(h, values(), *scores_);
    return *scores_;
  }
  /// Computes dH from the gradient of the last scores; keeps the gradients of the parameters.
  void backward(const edges& ds, matrix& dh) {
    require_pairs();
    pairs_->backward(ds, values(), gradients_, dh);
  }
  /// Sets the gradients of the parameters to those of the last backward, summed over the ranks. Local. Call
  /// it after nn::model::backward, which zeroes them.
  void give_gradients() {
    for (std::size_t k = 0; k < parameters_.size(); ++k) copy(gradients_[k], parameters_[k]->gradient());
  }
  /// What this rank receives in one forward and backward for the present pairs, in closed form.
  traffic predicted() const { return pairs_ ? pairs_->predicted() : traffic(); }

  /// scores(i, 0) of rows that are products of the rows of two vertices (m x 1, m x k). Local.
  void score_rows(const matrix& products, matrix& scores) const {
    const weights w = values();
    if (how_ != link_decoding::mlp) return gemm(products, transposed(*w[0]), scores);
    matrix hidden(products.mesh(), products.row_blocking(), products.col_blocking());
    gemm(products, *w[0], hidden, {.bias = w[1], .relu = true});
    gemm(hidden, *w[2], scores, {.bias = w[3]});
  }
  /// scores(v, i) of each row of H and the i-th of `rows`, which every rank has (n x c, c x k; c is 1 for
  /// mlp). Local.
  void score_all(const matrix& h, const dense<T, replicated, Device>& rows, matrix& scores) const {
    if (how_ == link_decoding::mlp) {
      matrix products(h.mesh(), h.row_blocking(), h.col_blocking());
      transform_columns(h, rows, products, std::multiplies<>{});
      return score_rows(products, scores);
    }
    dense<T, replicated, Device> weighted(h.mesh(), rows.shape());
    transform_columns(rows, *values()[0], weighted, std::multiplies<>{});
    gemm(h, transposed(weighted), scores);
  }
  /// How many rows score_all takes at a time, if there is room for `most`.
  global_index rows_at_once(global_index most) const { return how_ == link_decoding::mlp ? 1 : most; }

 private:
  using weights = typename detail::pair_scores<T, Device>::weights;

  parameter<T, Device>& add(std::string name, matrix_shape shape) {
    parameter<T, Device>& made = set_->add(std::move(name), shape);
    made.is_summed_as({});
    parameters_.push_back(&made);
    gradients_.emplace_back(set_->mesh(), shape);
    return made;
  }
  /// The learned matrices, or the diagonal of dot.
  weights values() const {
    weights all;
    for (parameter<T, Device>* const p : parameters_) all.push_back(&p->value());
    if (all.empty()) all.push_back(&ones_);
    return all;
  }
  void require_pairs() const {
    if (!pairs_) throw error("a decoder of links was asked for scores before it was given pairs");
  }

  link_decoding how_;
  nn::parameters<T, Device>* set_;
  std::vector<parameter<T, Device>*> parameters_;
  std::vector<dense<T, replicated, Device>> gradients_;
  dense<T, replicated, Device> ones_;
  std::optional<edges> scores_;
  std::unique_ptr<detail::pair_scores<T, Device>> pairs_;
};

template <class T, class Device>
link_decoder<T, Device>::link_decoder(link_decoding how, global_index width, nn::parameters<T, Device>& of,
                                      std::uint64_t seed)
    : how_(how), set_(&of), ones_(of.mesh(), {1, width}) {
  fill(ones_, T(1));
  if (how == link_decoding::distmult) copy(ones_, add("decoder_diagonal", {1, width}).value());
  if (how != link_decoding::mlp) return;
  for (const auto& [number, columns] : {std::pair("1", width), {"2", global_index{1}}}) {
    const double a = std::sqrt(6.0 / static_cast<double>(width + columns));
    const std::uint64_t word = random_key{seed, 0, 0x6d000000u + parameters_.size()}.word();
    auto& weight = add(std::string("decoder_weight_") + number, {width, columns}).value();
    transform_indexed(weight, weight, detail::uniform_entry<T>{word, a});
    add(std::string("decoder_bias_") + number, {1, columns});
  }
}

}  // namespace partita::nn
