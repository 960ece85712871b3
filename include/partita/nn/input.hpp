#pragma once
/// The input of a network: the features of this rank's vertices, dense or sparse, and what dropout leaves of
/// them.

#include <optional>
#include <variant>

#include "partita/nn/sparse_features.hpp"

namespace partita {

/// X (n x f) in vertex_rows. Nothing travels.
template <class T, class Place>
class input_features {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  input_features(matrix x) : features_(std::move(x)) {}
  input_features(sparse_features<T, Place> x) : features_(std::move(x)) {}

  extent shape() const {
    return std::visit([](const auto& x) { return x.shape(); }, features_);
  }

  /// From now on the input is dropout(X); X itself for a mask of probability 0.
  void apply(const dropout_mask& mask) {
    if (auto* sparse = std::get_if<sparse_features<T, Place>>(&features_)) return sparse->apply(mask);
    const matrix& x = std::get<matrix>(features_);
    drops_ = mask.probability > 0;
    if (!drops_) return;
    if (!dropped_) dropped_.emplace(x.mesh(), x.row_blocking(), x.col_blocking());
    dropout(x, *dropped_, mask);
  }

  /// visitor(x), x the present matrix or sparse_features.
  template <class Visitor>
  void visit(Visitor visitor) const {
    if (const auto* sparse = std::get_if<sparse_features<T, Place>>(&features_)) return visitor(*sparse);
    visitor(drops_ ? *dropped_ : std::get<matrix>(features_));
  }

  /// The present input written out.
  matrix whole() const {
    std::optional<matrix> result;
    visit([&](const auto& x) {
      result.emplace(x.mesh(), x.row_blocking(),
                     blocking::even(x.shape().cols, x.mesh().shape(), nesting::cols));
      write_out(x, *result);
    });
    return std::move(*result);
  }

 private:
  static void write_out(const matrix& x, matrix& y) { copy(x.mesh().queue(), x.local(), y.local()); }
  static void write_out(const sparse_features<T, Place>& x, matrix& y) { x.write_out(y.local()); }

  std::variant<matrix, sparse_features<T, Place>> features_;
  std::optional<matrix> dropped_;
  bool drops_ = false;
};

}  // namespace partita
