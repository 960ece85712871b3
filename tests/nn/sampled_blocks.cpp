// SPDX-License-Identifier: Apache-2.0
// The layers on blocks of neighbours: the losses and gradients are those of the whole graph.

#include <map>

#include "partita/compiled/host.hpp"
#include "partita/train/models.hpp"
#include "support/datasets.hpp"
#include "support/layers.hpp"
#include "support/recorded_sage.hpp"

namespace test_sampled_blocks {

using namespace test_support;

using operator_matrix = sparse<double, dynamic_layout, host>;

/// The entries of A (n x n), row by row.
std::vector<std::vector<triplet<double>>> rows_of_matrix(const operator_matrix& a) {
  std::vector<std::vector<triplet<double>>> rows(static_cast<std::size_t>(a.shape().rows));
  const auto entries = a.local()->entries(a.mesh().queue());
  const auto values = a.local()->values_of_entries(a.mesh().queue());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t e = entries.begin(0, i); e < entries.end(0, i); ++e)
      rows[i].push_back({static_cast<global_index>(i), entries.column(e), values[e]});
  return rows;
}

/// The blocks of `layers` layers with all neighbours, and the vertices of the input.
struct neighbourhood {
  std::vector<operator_matrix> blocks;
  std::vector<global_index> vertices;
};
neighbourhood whole_neighbourhood(const operator_matrix& a, const std::vector<global_index>& roots,
                                  int layers) {
  const auto rows = rows_of_matrix(a);
  neighbourhood found{{}, roots};
  std::map<global_index, global_index> number;
  for (const global_index v : roots) number.emplace(v, static_cast<global_index>(number.size()));
  for (int hop = 0; hop < layers; ++hop) {
    const std::vector<global_index> targets = found.vertices;
    std::vector<triplet<double>> entries;
    for (const global_index v : targets)
      for (const triplet<double>& e : rows[static_cast<std::size_t>(v)]) {
        const auto [at, is_new] = number.emplace(e.col, static_cast<global_index>(number.size()));
        if (is_new) found.vertices.push_back(e.col);
        entries.push_back({number.at(v), at->second, e.value});
      }
    const auto cut = [&](std::size_t size) {
      return blocking::even(static_cast<global_index>(size), a.mesh().shape(), nesting::rows);
    };
    found.blocks.insert(found.blocks.begin(),
                        distribute(a.mesh(), a.layout(), cut(targets.size()), cut(found.vertices.size()),
                                   entries, symmetry::general, a.operand_layout()));
  }
  return found;
}

struct step_result {
  double loss;
  std::vector<double> gradients;
};

TEST_CASE("on whole neighbourhoods, with dropout, losses and gradients are those of the whole graph") {
  const io::dataset d = directed_graph(43);
  const host_mesh m = alone();
  nn::add_model(recorded_sage());
  const std::vector<global_index> roots{7, 3, 40, 11, 42, 5};  // 42 is isolated
  for (const auto& named : nn::named_models<double, host>()) {
    if (!named.is_on_blocks() || !named.on_blocks.slices) continue;  // of edge data: train/mini_batch.cpp
    CAPTURE(named.name);
    nn::training_options o{.model = std::string(named.name), .hidden = {6}, .heads = 2, .epsilon = 0.25};
    o.dropout = 0.3;
    const operator_matrix a =
        graph::propagation_matrices<double, host>(m, d, o, row_1d).matrix_for(named.multiplies_with);
    const auto run = [&](nn::model<double, host>& model, const rows_matrix& input, auto label,
                         const global_index* vertices) {
      const algebra::vertex_labels<host> labels(m, model.row_blocking(), label);
      rows_matrix dz(m, {model.row_blocking().size(), d.classes});
      const algebra::operand<double, host> h(input);
      const auto& logits = model.forward(h, {.training = true, .epoch = 3, .vertices = vertices});
      const double loss = algebra::cross_entropy(logits, labels, dz);
      model.backward(dz);
      return step_result{loss, collect(model.parameters().gradients())};
    };
    nn::model_options how = nn::options_of_model(o);
    const auto label_of = [&](global_index v) { return d.labels[static_cast<std::size_t>(v)]; };
    auto whole = named.make({a, d, o, nn::builder<double, host>(a, how)});
    const auto x = graph::local_features<double>(m, d, false);
    const step_result expected = run(
        whole, x, [&](global_index v) { return std::ranges::count(roots, v) > 0 ? label_of(v) : -1; },
        nullptr);

    const neighbourhood sampled = whole_neighbourhood(a, roots, 2);
    how.sampled = true;
    const auto rows = generate<vertex_rows, double>(
        m, {static_cast<global_index>(sampled.vertices.size()), d.features},
        [&](global_index i, global_index j) {
          return x.local()(static_cast<local_index>(sampled.vertices[static_cast<std::size_t>(i)]),
                           static_cast<local_index>(j));
        });
    std::shared_ptr<nn::parameters<double, host>> shared;
    for (int again = 0; again < 2; ++again) {  // the second model shares the parameters of the first
      const nn::builder<double, host> b(m, rows.row_blocking(), how, shared);
      auto model = named.make({nn::layer_matrices<double, host>(sampled.blocks), d, o, b});
      CHECK(model.row_blocking().size() == 6);
      const step_result found = run(
          model, rows, [&](global_index i) { return label_of(roots[static_cast<std::size_t>(i)]); },
          sampled.vertices.data());
      CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-13));
      CHECK(largest_difference(found.gradients, expected.gradients) < 1e-13);
      if (shared) CHECK(shared.get() == &model.parameters());
      shared = b.parameters();
    }
    CHECK(largest_difference(expected.gradients, std::vector<double>(expected.gradients.size())) > 1e-3);
  }
}

TEST_CASE("a model refuses parameters of another, and a missing block") {
  const host_mesh m = alone();
  const auto rows = blocking::even(3, m.shape(), nesting::rows);
  const nn::builder<double, host> first(m, rows);
  first.glorot("W", {3, 4});
  const nn::builder<double, host> second(m, rows, {}, first.parameters());
  CHECK_THROWS_WITH_AS(
      second.glorot("W", {3, 5}),
      "a model needs parameter W0 of 3 x 5 where the model whose parameters it shares has W0 of 3 x 4",
      shape_error);
  CHECK_THROWS_AS((nn::layer_matrices<double, host>(std::vector<operator_matrix>{})), shape_error);
}

}  // namespace test_sampled_blocks
