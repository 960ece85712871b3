// SPDX-License-Identifier: Apache-2.0
#pragma once
// What training must show under every policy, on every mesh and for every model: the run of one rank.
#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/runs.hpp"
#include "support/summing.hpp"

namespace test_support {

inline nn::training_options of_model(nn::training_options o, std::string_view model) {
  o.model = model;
  if (o.layers == 0 && model == "resgcn") o.layers = 2;
  return o;
}

/// The options for every model in every variant that train_model knows, with few layers.
inline std::vector<nn::training_options> every_variant(const nn::training_options& o) {
  std::vector<nn::training_options> all;
  for (const auto& named : nn::named_models<double, host>()) {
    if (named.multiplies_with == graph::propagation_matrix::relations) continue;  // see nn/rgcn.cpp
    all.push_back(of_model(o, named.name));
    if (o.layers == 0 && named.name == "gcnii") all.back().layers = 2;
    all.back().coupling = named.coupling;
    all.back().aggregation = named.aggregation;
  }
  return all;
}

inline nn::training_result serial(const io::dataset& d, nn::training_options o) {
  o.pipeline = {};
  return nn::train_model<double>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
}

/// train(mesh, policy) gives the expected run on every mesh of these numbers of ranks, beyond eight on the
/// default ones; sanitizers see fewer of them for models other than gcn and gat.
void check_everywhere(const nn::training_result& expected, const auto& ranks, std::string_view model,
                      double tolerance, auto train) {
  for_each_mesh(ranks, [&](const policy& p, mesh_shape shape) {
    const bool is_default = shape == default_mesh(p, shape.size());
    if (shape.size() > (sanitized && model != "gat" ? 2 : 8) && !is_default) return;
    if (sanitized && model != "gcn" && shape.size() > 4) return;
    with_mesh(shape, [&](const host_mesh& m) {
      check_run(train(m, p), expected, tolerance, std::string(model) + ", " + where(p, shape),
                scores::compared);
    });
  });
}
/// The same for the whole graph.
void check_everywhere(const io::dataset& d, const nn::training_options& o, const auto& ranks,
                      double tolerance = 1e-9) {
  check_everywhere(serial(d, o), ranks, o.model, tolerance,
                   [&](const host_mesh& m, const policy& p) { return nn::train_model<double>(m, d, o, p); });
}

inline mesh<host> reproducible_mesh(const communicator& world, mesh_shape shape, int threads = 1,
                                    summation sums = summation::reproducible) {
  return {world, shape, summing(sums, threads)};
}

/// Losses or other numbers of a run, and what it has learned as bits.
struct run_bits {
  std::vector<double> numbers;
  std::vector<std::byte> bits;
  bool operator==(const run_bits&) const = default;

  template <class T>
  void add(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    bits.insert(bits.end(), bytes.begin(), bytes.end());
  }
};

}  // namespace test_support
