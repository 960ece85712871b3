#pragma once
/// A layer with its input added: He, Zhang, Ren, Sun (CVPR 2016), eq. 1.

#include <functional>
#include <utility>

#include "partita/nn/dense_input.hpp"
#include "partita/nn/model.hpp"

namespace partita {

/// Z = H + layer(H), dH = dZ + what the layer gives (n x f all), H and Z in vertex_rows.
///
/// Every rank that must call the layer must call. What travels: what the layer sends. Throws shape_error when
/// the layer gives another width than it takes.
template <class Layer>
class residual {
 public:
  using matrix = typename Layer::matrix;

  /// A layer of input width `in`, constructed in place from `arguments`.
  template <class... Arguments>
  explicit residual(global_index in, Arguments&&... arguments)
      : layer_(std::forward<Arguments>(arguments)...) {
    if (in != layer_.out().size())
      throw shape_error("a residual layer takes as many features as it gives, not " + std::to_string(in) +
                        " to give " + std::to_string(layer_.out().size()));
  }

  template <class Input>
  void forward(const Input& h, matrix& z, const dropout_pass& pass = {}) {
    layer_.forward(h, z, pass);  // (n/P, f)
    zip(written_out_(h), z, z, std::plus<>{});
  }
  /// dh: null when nobody needs the gradient of H.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    layer_.backward(h, dz, dh);  // (n/P, f)
    if (dh != nullptr) zip(dz, *dh, *dh, std::plus<>{});
  }

  const blocking& out() const { return layer_.out(); }
  volume predicted() const { return layer_.predicted(); }

 private:
  using value = typename matrix::value_type;

  Layer layer_;
  dense_input<value, typename matrix::place> written_out_;
};

}  // namespace partita
