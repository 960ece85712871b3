#pragma once
/// Graph attention: Velickovic et al. (ICLR 2018), section 2.1.

#include "partita/nn/attention_vectors.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

namespace detail {

/// Column o of what is the mean of blocks side by side, `width` columns each: `part` of column o of each.
template <class T>
struct mean_of_blocks {
  local_index width;
  T part;
  constexpr T operator()(local_index j, local_index o, T) const { return j % width == o ? part : T(0); }
};

/// Dropout of coefficients is apart from that of features.
inline constexpr std::uint64_t attention_stream = 1u << 20;

}  // namespace detail

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

  gat_convolution(const sparse<T, dynamic_layout, Place>& a, parameters<T, Place>& set,
                  const std::string& name, global_index in, local_index out, local_index heads, bool mean,
                  std::uint64_t layer, const model_options& options)
      : set_(&set),
        shape_{.heads = heads, .width = out},
        mean_(mean),
        layer_(layer),
        weight_(set.add("W" + name, {in, shape_.columns()}, options.weight_decay)),
        vectors_(set, a.row_blocking(), name, shape_, options.weight_decay, options.seed),
        bias_(set.add("b" + name, {1, mean ? out : shape_.columns()}, options.weight_decay)),
        attention_(a, shape_, options.products, options.coefficients),
        out_(blocking::even(mean ? out : shape_.columns(), a.mesh().shape(), nesting::cols)),
        x_(a.mesh(), a.row_blocking(), attention_.features()),
        y_(a.mesh(), a.row_blocking(), attention_.features()),
        dx_(a.mesh(), a.row_blocking(), attention_.features()),
        dy_(a.mesh(), a.row_blocking(), attention_.features()) {
    glorot(set, weight_, options.seed);
    if (!mean_) return;
    const auto size = static_cast<std::size_t>(shape_.columns()) * static_cast<std::size_t>(out);
    average_ = buffer<T, Place>(a.mesh().queue(), size);
    map_indexed(a.mesh().queue(), detail::mean_of_blocks<T>{out, T(1) / static_cast<T>(heads)}, average(),
                average());
  }

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& pass) {
    const auto& q = set_->mesh().queue();
    multiply_weight(h, set_->value(weight_), x_);  // (n/P, heads*out)
    attention_.forward(x_, vectors_.forward(x_), y_,
                       pass.mask(detail::attention_stream + layer_));  // (n/P, heads*out)
    if (mean_)
      return affine(q, y_.local(), average(), set_->value(bias_).data, false, T(0),
                    z.local());  // (n/P, out)
    copy(q, y_.local(), z.local());
    add_row(q, set_->value(bias_).data, z.local());
  }

  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    const auto& q = set_->mesh().queue();
    column_sums(q, dz.local(), set_->gradient(bias_).data);
    if (mean_) gemm(q, false, true, T(1), dz.local(), average(), T(0),
                    dy_.local());                                                   // (n/P, heads*out)
    attention_.backward(x_, mean_ ? dy_ : dz, dx_, vectors_.gradient());            // (n/P, heads*out)
    vectors_.backward(x_, dx_);                                                     // (n/P, heads*out)
    local_weight_gradient(h, dx_, set_->gradient(weight_));                         // (f_in, heads*out)
    if (dh != nullptr) multiply_transposed_weight(dx_, set_->value(weight_), *dh);  // (n/P, f_in)
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return attention_.predicted(); }

 private:
  matrix_view<T> average() {
    const auto width = static_cast<local_index>(out_.size());
    return {average_.data(), shape_.heads * shape_.width, width, width};
  }

  parameters<T, Place>* set_;
  attention_shape shape_;
  bool mean_;
  std::uint64_t layer_;
  std::size_t weight_;
  attention_vectors<T, Place> vectors_;
  std::size_t bias_;
  attention<T, Place> attention_;
  blocking out_;
  matrix x_, y_, dx_, dy_;
  buffer<T, Place> average_;
};

/// Attention layers with elu between; widths: f, hidden widths a head, classes. Heads side by side, in the
/// last layer averaged.
template <class T, class Place>
class gat : public stack<gat_convolution<T, Place>, activation::elu, T, Place> {
  using layer = gat_convolution<T, Place>;

 public:
  gat(const sparse<T, dynamic_layout, Place>& a, const std::vector<global_index>& widths, int heads,
      int last_heads, const model_options& options)
      : stack<layer, activation::elu, T, Place>(
            a.mesh(), a.row_blocking(), widths.size() - 1, [&](auto& set, std::size_t l) {
              const bool last = l + 2 == widths.size();
              return std::make_unique<layer>(
                  a, set, std::to_string(l), l == 0 ? widths[0] : widths[l] * heads,
                  narrow(widths[l + 1], "the width of a head"), last ? last_heads : heads, last, l, options);
            }) {}
};

}  // namespace partita
