#pragma once
/// Graph attention: Velickovic et al. (ICLR 2018), section 2.1.

#include "partita/nn/attention.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

/// Z = heads side by side (or their mean) of attention over X = H W, + b; e_uv = leaky(0.2)(a_src . X_u +
/// a_dst . X_v). H (n x f_in), W (f_in x heads*out), a_src, a_dst (heads x out), Z (n x heads*out, or n x out
/// for the mean).
///
/// Every rank of the mesh must call. What travels: see attention; gradients are this rank's part until
/// parameters::sum_gradients.
template <class T, class Place>
class gat_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  gat_convolution(const graph_operator<T, Place>& a, const graph_operator<T, Place>& complete,
                  parameters<T, Place>& set, const std::string& name, global_index in, local_index out,
                  local_index heads, bool mean, std::uint64_t layer, double decay, std::uint64_t seed,
                  spmm_options options = {})
      : set_(&set),
        width_(out),
        heads_(heads),
        mean_(mean),
        layer_(layer),
        weight_(set.add("W" + name, {in, global_index{heads} * out}, decay)),
        source_(set.add("asrc" + name, {heads, out}, decay)),
        target_(set.add("adst" + name, {heads, out}, decay)),
        bias_(set.add("b" + name, {1, mean ? out : heads * out}, decay)),
        attention_(a, complete, heads, out, 0.2, options),
        out_(blocking::even(mean ? out : global_index{heads} * out, a.mesh().shape(), nesting::cols)),
        x_(a.mesh(), a.row_blocking(), attention_.features()),
        y_(a.mesh(), a.row_blocking(), attention_.features()),
        dx_(a.mesh(), a.row_blocking(), attention_.features()),
        dy_(a.mesh(), a.row_blocking(), attention_.features()),
        scores_(a.mesh(), extent{a.row_blocking().size(), 2 * heads}),
        dscores_(a.mesh(), extent{a.row_blocking().size(), 2 * heads}) {
    glorot(set, weight_, seed);
    glorot(set, source_, seed);
    glorot(set, target_, seed);
    const auto& q = a.mesh().queue();
    const auto size = static_cast<std::size_t>(heads) * static_cast<std::size_t>(out);
    vectors_ = buffer<T, Place>(q, size * static_cast<std::size_t>(2 * heads));
    vector_gradient_ = buffer<T, Place>(q, size * static_cast<std::size_t>(2 * heads));
    average_ = buffer<T, Place>(q, mean ? size * static_cast<std::size_t>(out) : 0);
    const T part = T(1) / static_cast<T>(heads);
    if (mean_)
      kernels<Place>::map_indexed(
          q, [=](local_index j, local_index o, T) { return j % out == o ? part : T(0); }, average(),
          average());
  }

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& pass) {
    const auto& q = set_->mesh().queue();
    multiply_weight(h, set_->value(weight_), x_);  // (n/P, heads*out)
    spread_vectors();
    kernels<Place>::gemm(q, false, false, T(1), x_.local(), of(vectors_), T(0),
                         scores_.local());                                      // (n/P, 2 heads)
    attention_.forward(x_, scores_, y_, pass.mask(attention_stream + layer_));  // (n/P, heads*out)
    if (mean_)
      kernels<Place>::gemm(q, false, false, T(1), y_.local(), average(), T(0), z.local());  // (n/P, out)
    else
      kernels<Place>::copy(q, y_.local(), z.local());
    kernels<Place>::add_row(q, set_->value(bias_).data, z.local());
  }

  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    const auto& q = set_->mesh().queue();
    kernels<Place>::column_sums(q, dz.local(), set_->gradient(bias_).data);
    if (mean_)
      kernels<Place>::gemm(q, false, true, T(1), dz.local(), average(), T(0),
                           dy_.local());  // (n/P, heads*out)
    attention_.backward(x_, y_, mean_ ? dy_ : dz, dx_, dscores_);
    kernels<Place>::gemm(q, true, false, T(1), x_.local(), dscores_.local(), T(0),
                         of(vector_gradient_));  // (heads*out, 2 heads)
    collect_vector_gradients();
    kernels<Place>::gemm(q, false, true, T(1), dscores_.local(), of(vectors_), T(1),
                         dx_.local());                                              // (n/P, heads*out)
    local_weight_gradient(h, dx_, set_->gradient(weight_));                         // (f_in, heads*out)
    if (dh != nullptr) multiply_transposed_weight(dx_, set_->value(weight_), *dh);  // (n/P, f_in)
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return attention_.predicted(); }

 private:
  static constexpr std::uint64_t attention_stream =
      1u << 20;  ///< dropout of coefficients is apart from that of features

  matrix_view<T> of(buffer<T, Place>& b) const { return {b.data(), heads_ * width_, 2 * heads_, 2 * heads_}; }
  matrix_view<T> average() { return {average_.data(), heads_ * width_, width_, width_}; }

  /// vectors(h*out + o, h) = a_src(h, o), vectors(h*out + o, heads + h) = a_dst(h, o), else 0: (heads*out, 2
  /// heads).
  void spread_vectors() {
    const T *source = set_->value(source_).data, *target = set_->value(target_).data;
    const local_index heads = heads_, width = width_;
    const auto entry = [=](local_index j, local_index h, T) {
      return j / width != h % heads ? T(0) : h < heads ? source[j] : target[j];
    };
    kernels<Place>::map_indexed(set_->mesh().queue(), entry, of(vectors_), of(vectors_));
  }
  void collect_vector_gradients() {
    const T* from = vector_gradient_.data();
    const local_index heads = heads_, width = width_;
    const auto collect = [&](matrix_view<T> to, local_index shift) {
      const auto entry = [=](local_index h, local_index o, T) {
        return from[(h * width + o) * 2 * heads + shift + h];
      };
      kernels<Place>::map_indexed(set_->mesh().queue(), entry, to, to);
    };
    collect(set_->gradient(source_), 0);
    collect(set_->gradient(target_), heads);
  }

  parameters<T, Place>* set_;
  local_index width_, heads_;
  bool mean_;
  std::uint64_t layer_;
  std::size_t weight_, source_, target_, bias_;
  attention<T, Place> attention_;
  blocking out_;
  matrix x_, y_, dx_, dy_, scores_, dscores_;
  buffer<T, Place> vectors_, vector_gradient_, average_;
};

/// Attention layers with elu between; widths: f, hidden widths a head, classes. Heads side by side, in the
/// last layer averaged.
template <class T, class Place>
class gat : public stack<gat_convolution<T, Place>, activation::elu, T, Place> {
  using layer = gat_convolution<T, Place>;

 public:
  gat(const graph_operator<T, Place>& a, const graph_operator<T, Place>& complete,
      const std::vector<global_index>& widths, int heads, int last_heads, const model_options& options)
      : stack<layer, activation::elu, T, Place>(
            a.mesh(), a.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              const bool last = l + 2 == widths.size();
              return std::make_unique<layer>(
                  a, complete, set, std::to_string(l), l == 0 ? widths[0] : widths[l] * heads,
                  narrow(widths[l + 1], "the width of a head"), last ? last_heads : heads, last, l,
                  options.weight_decay, options.seed, options.products);
            }) {}
};

}  // namespace partita
