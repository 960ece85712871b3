// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers by themselves: matrices by hand, gradients by finite differences, dense and sparse inputs.

#include "partita/algebra/reductions.hpp"
#include "partita/comm/self.hpp"
#include "partita/nn/layer.hpp"
#include "support/matrices.hpp"

namespace test_support {

using rows_matrix = partita::dense<double, partita::vertex_rows, partita::host>;
using host_builder = partita::nn::builder<double, partita::host>;

inline host_mesh alone() { return host_mesh(partita::self::world(), {1, 1, 1}); }
/// A matrix (shape) of row-major values.
inline rows_matrix from(const host_mesh& m, partita::matrix_shape shape, const std::vector<double>& values) {
  return partita::generate<partita::vertex_rows, double>(m, shape, [&](global_index i, global_index j) {
    return values[static_cast<std::size_t>(i * shape.cols + j)];
  });
}
inline std::vector<double> values(const rows_matrix& x) { return {x.values().begin(), x.values().end()}; }
/// Parameter i of those that were made with b.
inline void assign(const host_builder& b, std::size_t i, const std::vector<double>& values) {
  std::copy(values.begin(), values.end(), b.parameters()->list()[i].value().values().begin());
}
/// A builder in the middle of a model, where the input needs a gradient: parameter 0 is of layers before.
inline host_builder in_the_middle(const rows_matrix& h) {
  const host_builder b(h.mesh(), h.row_blocking(), {.seed = 5});
  fill(b.filled("before", {1, 1}).value(), 1);
  return b;
}

/// Compares every gradient of the sum of (weights * layer(h)) with finite differences, and what one forward
/// and backward receive with what is predicted. Every rank must call.
inline void check_gradients(const host_builder& b, partita::nn::layer<double, partita::host>&& layer,
                            rows_matrix& h) {
  const auto& m = h.mesh();
  auto& set = *b.parameters();
  const auto weights = partita::generate<partita::vertex_rows, double>(
      m, {h.shape().rows, layer.width()}, [](auto i, auto j) { return element(j, i + 5); });
  rows_matrix z = b.rows(layer.width()), dh(m, h.row_blocking(), h.col_blocking());
  m.ledger().clear();
  layer.forward(h, z, {});
  same(heard(m), layer.predicted_forward(), "one forward");
  layer.backward(h, weights, &dh);
  same(heard(m), layer.predicted(), "one forward and backward");
  set.sum_gradients();
  const std::vector<double> gradient = collect(set.gradients()), whole = collect(dh);
  const auto slope = [&](double* entry) {  // null where other ranks have it
    const double before = entry ? *entry : 0, step = 1e-6;
    const auto loss = [&](double value) {
      if (entry) *entry = value;
      layer.forward(h, z, {});
      zip(z, weights, z, [](double a, double b) { return a * b; });
      return sum(z);
    };
    const double above = loss(before + step), below = loss(before - step);
    if (entry) *entry = before;
    return (above - below) / (2 * step);
  };
  for (std::size_t i = 0; i < gradient.size(); ++i)
    CHECK(slope(&set.values().values()[i]) == doctest::Approx(gradient[i]).epsilon(1e-6));
  for (global_index e = 0; e < static_cast<global_index>(whole.size()); e += 2) {
    const global_index v = e / h.shape().cols, j = e % h.shape().cols;
    double* const mine =
        h.row_range().contains(v)
            ? &h.values()[static_cast<std::size_t>((v - h.row_range().begin) * h.shape().cols + j)]
            : nullptr;
    CHECK(slope(mine) == doctest::Approx(whole[static_cast<std::size_t>(e)]).epsilon(1e-6));
  }
}

/// The same matrix in compressed rows.
inline partita::sparse_rows<double, partita::host> compressed(const rows_matrix& h) {
  std::vector<triplet<double>> entries;
  for (global_index v = h.row_range().begin; v < h.row_range().end; ++v)
    for (partita::local_index j = 0; j < h.local().cols; ++j) {
      const double x = h.local()(static_cast<partita::local_index>(v - h.row_range().begin), j);
      if (x != 0) entries.push_back({v, j, x});
    }
  return {h.mesh(), h.row_blocking(), h.shape().cols, entries};
}

/// Checks that a layer gives the same for a matrix and for the same matrix in compressed rows.
inline void check_sparse_input(const host_builder& b, partita::nn::layer<double, partita::host>&& layer,
                               const rows_matrix& h) {
  const auto dz =
      partita::generate<partita::vertex_rows, double>(h.mesh(), {h.shape().rows, layer.width()}, field(0));
  rows_matrix z = b.rows(layer.width());
  const auto run = [&](const auto& input) {
    layer.forward(input, z, {});
    layer.backward(input, dz, nullptr);
    std::vector<double> all = values(z);
    const std::vector<double> gradients = collect(b.parameters()->gradients());
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  };
  const std::vector<double> expected = run(h);
  CHECK(largest_difference(run(compressed(h)), expected) < 1e-13);
}

}  // namespace test_support
