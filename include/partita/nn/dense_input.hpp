#pragma once
/// The input of a layer as a matrix, for layers that need every entry of it.

#include <optional>

#include "partita/nn/sparse_features.hpp"

namespace partita {

/// A matrix is itself; sparse features are written out (n/P, f) into a matrix that stays. Nothing travels.
template <class T, class Place>
class dense_input {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  const matrix& operator()(const matrix& h) { return h; }
  const matrix& operator()(const sparse_features<T, Place>& h) {
    if (!written_out_)
      written_out_.emplace(h.mesh(), h.row_blocking(),
                           blocking::even(h.shape().cols, h.mesh().shape(), nesting::cols));
    h.write_out(written_out_->local());
    return *written_out_;
  }
  /// Gives the memory back.
  void release() { written_out_.reset(); }

 private:
  std::optional<matrix> written_out_;
};

}  // namespace partita
