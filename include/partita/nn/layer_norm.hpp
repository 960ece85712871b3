#pragma once
/// Normalisation of every vertex's features: Ba, Kiros, Hinton (2016), arXiv:1607.06450, eq. 4.

#include <cmath>
#include <functional>

#include "partita/nn/dense_input.hpp"
#include "partita/nn/model.hpp"

namespace partita {

namespace detail {

/// x - sums[i] part, the distance from the mean of row i.
template <class T>
struct less_row_mean {
  const T* sums;
  T part;
  constexpr T operator()(local_index i, local_index, T x) const { return x - sums[i] * part; }
};

/// 1 / sqrt(squares part + epsilon).
template <class T>
struct inverse_deviation {
  T part, epsilon;
  constexpr T operator()(T squares) const { return T(1) / std::sqrt(squares * part + epsilon); }
};

/// gamma[j] x.
template <class T>
struct scaled_columns {
  const T* gamma;
  constexpr T operator()(local_index, local_index j, T x) const { return gamma[j] * x; }
};

/// gamma[j] x + beta[j].
template <class T>
struct affine_columns {
  const T *gamma, *beta;
  constexpr T operator()(local_index, local_index j, T x) const { return gamma[j] * x + beta[j]; }
};

/// scales[i] (g - part (sums[i] + normalized(i, j) product_sums[i])).
template <class T>
struct layer_norm_gradient {
  const T *scales, *sums, *product_sums;
  matrix_view<const T> normalized;
  T part;
  constexpr T operator()(local_index i, local_index j, T g) const {
    return scales[i] * (g - part * (sums[i] + normalized(i, j) * product_sums[i]));
  }
};

}  // namespace detail

/// Z = gamma * N + beta, N = (H - mean) / sqrt(var + 1e-5), mean and var over each row (n x f all, gamma and
/// beta 1 x f); var divides by f. With g = gamma * dZ: dH = (g - mean(g) - N mean(g N)) / sqrt(var + 1e-5).
///
/// H and Z are in vertex_rows, so rows are whole and nothing travels; gradients are this rank's part until
/// parameters::sum_gradients. Throws shape_error for matrices of another shape.
template <class T, class Place>
class layer_norm {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// Parameters `gamma`, ones, and `beta`, zeros.
  layer_norm(parameters<T, Place>& set, const std::string& gamma, const std::string& beta,
             const blocking& rows, global_index width, double decay = 0)
      : set_(&set),
        gamma_(set.add(gamma, {1, width}, decay)),
        beta_(set.add(beta, {1, width}, decay)),
        out_(blocking::even(width, set.mesh().shape(), nesting::cols)),
        normalized_(set.mesh(), rows, out_),
        products_(set.mesh(), rows, out_),
        scales_(set.mesh().queue(), row_count()),
        sums_(set.mesh().queue(), row_count()),
        product_sums_(set.mesh().queue(), row_count()) {
    fill(set.mesh().queue(), T(1), set.value(gamma_));
  }

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}) {
    const auto& q = set_->mesh().queue();
    const matrix& x = written_out_(h);
    const T part = T(1) / static_cast<T>(out_.size());
    row_sums(q, x.local(), sums_.data());  // (n/P)
    map_indexed(q, detail::less_row_mean<T>{sums_.data(), part}, x.local(),
                normalized_.local());                               // (n/P, f)
    zip(normalized_, normalized_, products_, std::multiplies<>{});  // (n/P, f)
    row_sums(q, products_.local(), scales_.data());                 // (n/P)
    const matrix_view<T> scales{scales_.data(), 1, normalized_.local().rows, normalized_.local().rows};
    map(q, detail::inverse_deviation<T>{part, T(1e-5)}, scales, scales);
    scale_rows(q, scales_.data(), normalized_.local());  // (n/P, f)
    const detail::affine_columns<T> affine{set_->value(gamma_).data, set_->value(beta_).data};
    map_indexed(q, affine, normalized_.local(), z.local());  // (n/P, f)
  }

  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input&, const matrix& dz, matrix* dh) {
    const auto& q = set_->mesh().queue();
    zip(dz, normalized_, products_, std::multiplies<>{});            // (n/P, f)
    column_sums(q, products_.local(), set_->gradient(gamma_).data);  // (1, f)
    column_sums(q, dz.local(), set_->gradient(beta_).data);          // (1, f)
    if (dh == nullptr) return;
    const detail::scaled_columns<T> weigh{set_->value(gamma_).data};
    map_indexed(q, weigh, products_.local(), products_.local());  // (n/P, f)
    row_sums(q, products_.local(), product_sums_.data());         // (n/P)
    map_indexed(q, weigh, dz.local(), dh->local());               // (n/P, f)
    row_sums(q, dh->local(), sums_.data());                       // (n/P)
    const detail::layer_norm_gradient<T> gradient{scales_.data(), sums_.data(), product_sums_.data(),
                                                  normalized_.local(), T(1) / static_cast<T>(out_.size())};
    map_indexed(q, gradient, dh->local(), dh->local());  // (n/P, f)
  }

  const blocking& out() const { return out_; }
  volume predicted() const { return {}; }

 private:
  std::size_t row_count() const { return static_cast<std::size_t>(normalized_.local().rows); }

  parameters<T, Place>* set_;
  std::size_t gamma_, beta_;
  blocking out_;
  matrix normalized_, products_;
  buffer<T, Place> scales_, sums_, product_sums_;  ///< scales: 1 / sqrt(var + epsilon)
  dense_input<T, Place> written_out_;
};

}  // namespace partita
