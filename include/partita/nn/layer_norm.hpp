#pragma once
/// Normalisation of every vertex's features: Ba, Kiros, Hinton (2016), arXiv:1607.06450, eq. 4.

#include <cmath>

#include "partita/nn/dense_input.hpp"
#include "partita/nn/model.hpp"

namespace partita {

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
    kernels<Place>::fill(set.mesh().queue(), T(1), set.value(gamma_));
  }

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& = {}) {
    const auto& q = set_->mesh().queue();
    const matrix& x = written_out_(h);
    const T part = T(1) / static_cast<T>(out_.size()), epsilon = T(1e-5);
    const T* const sums = sums_.data();
    kernels<Place>::row_sums(q, x.local(), sums_.data());  // (n/P)
    kernels<Place>::map_indexed(
        q, [=](local_index i, local_index, T value) { return value - sums[i] * part; }, x.local(),
        normalized_.local());  // (n/P, f)
    map(normalized_, products_, [](T value) { return value * value; });
    kernels<Place>::row_sums(q, products_.local(), scales_.data());  // (n/P)
    const matrix_view<T> scales{scales_.data(), 1, normalized_.local().rows, normalized_.local().rows};
    kernels<Place>::map(
        q, [=](T squares) { return T(1) / std::sqrt(squares * part + epsilon); }, scales, scales);
    kernels<Place>::scale_rows(q, scales_.data(), normalized_.local());  // (n/P, f)
    const T *gamma = set_->value(gamma_).data, *beta = set_->value(beta_).data;
    kernels<Place>::map_indexed(
        q, [=](local_index, local_index j, T value) { return gamma[j] * value + beta[j]; },
        normalized_.local(), z.local());  // (n/P, f)
  }

  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input&, const matrix& dz, matrix* dh) {
    const auto& q = set_->mesh().queue();
    zip(dz, normalized_, products_, [](T d, T value) { return d * value; });         // (n/P, f)
    kernels<Place>::column_sums(q, products_.local(), set_->gradient(gamma_).data);  // (1, f)
    kernels<Place>::column_sums(q, dz.local(), set_->gradient(beta_).data);          // (1, f)
    if (dh == nullptr) return;
    const T* const gamma = set_->value(gamma_).data;
    const auto weigh = [=](local_index, local_index j, T value) { return gamma[j] * value; };
    kernels<Place>::map_indexed(q, weigh, products_.local(), products_.local());  // (n/P, f)
    kernels<Place>::row_sums(q, products_.local(), product_sums_.data());         // (n/P)
    kernels<Place>::map_indexed(q, weigh, dz.local(), dh->local());               // (n/P, f)
    kernels<Place>::row_sums(q, dh->local(), sums_.data());                       // (n/P)
    const T part = T(1) / static_cast<T>(out_.size());
    const T *sums = sums_.data(), *product_sums = product_sums_.data(), *scales = scales_.data();
    const matrix_view<const T> normalized = normalized_.local();
    kernels<Place>::map_indexed(
        q,
        [=](local_index i, local_index j, T g) {
          return scales[i] * (g - part * (sums[i] + normalized(i, j) * product_sums[i]));
        },
        dh->local(), dh->local());  // (n/P, f)
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
