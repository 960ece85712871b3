// SPDX-License-Identifier: Apache-2.0
// Where models can be cut, what their layers cost, and how stages are balanced.
#include "partita/train/model_outline.hpp"

#include <doctest/doctest.h>

#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/ranks.hpp"

namespace test_model_outline {

using namespace test_support;

nn::model_outline outline(const std::string& model, int layers = 4) {
  nn::training_options o{.model = model, .hidden = {8}, .layers = layers};
  return nn::outline_of<double>(device_queue<host>(), directed_graph(), o);
}

/// The least that the costliest of `stages` runs can cost, by trying all cuts.
double least(const std::vector<double>& costs, std::size_t begin, int stages) {
  double run = 0, best = 1e30;
  if (stages == 1) {
    for (std::size_t l = begin; l < costs.size(); ++l) run += costs[l];
    return run;
  }
  for (std::size_t l = begin; l + 1 < costs.size(); ++l) {
    run += costs[l];
    best = std::min(best, std::max(run, least(costs, l + 1, stages - 1)));
  }
  return best;
}

TEST_CASE("layers, their inputs, parameters and products") {
  const nn::model_outline gcn = outline("gcn");
  REQUIRE(gcn.layers.size() == 4);
  CHECK(gcn.layers[0].weights == 13 * 8 + 8);
  CHECK(gcn.layers[0].products == 13);  // A (X W), and back for W
  CHECK(gcn.layers[1].products == 8 + 8);
  CHECK(gcn.layers[3].products == 5 + 5);
  CHECK(gcn.boundary_width(2) == 8);
  CHECK(gcn.output_width == 5);
  CHECK(gcn.skips.empty());

  const nn::model_outline sage = outline("sage");
  CHECK(sage.layers[1].weights == 2 * 8 * 8 + 8);
  CHECK(sage.layers[1].end - sage.layers[1].first == 3);

  const nn::model_outline gcnii = outline("gcnii");
  REQUIRE(gcnii.layers.size() == 6);  // two dense layers around the convolutions
  REQUIRE(gcnii.skips.size() == 1);
  CHECK(gcnii.boundary_width(1) == 16);
  CHECK(gcnii.boundary_width(4) == 16);
  CHECK(gcnii.boundary_width(5) == 8);  // H_0 is not read after the last convolution
  CHECK(gcnii.layers[0].products == 0);

  CHECK(outline("resgcn").layers.size() == 1 + 4 + 2);  // the last normalisation counts
  for (const char* model : {"gat", "appnp", "sgc"})
    expect_error<error>("cannot be cut into stages", [&] { outline(model); });
}

TEST_CASE("every row of the table of models has one factory, and is where it says it can be trained") {
  const auto& known = nn::named_models<double, host>();
  CHECK(known.size() == std::size(nn::model_rows));
  expect_error<error>("there is a model gcn already", [&] { nn::add_model(known.front()); });
  for (const nn::model_row& row : nn::model_rows) {
    const nn::training_options o{.model = std::string(row.name),
                                 .coupling = row.coupling,
                                 .aggregation = row.aggregation,
                                 .hidden = {8}};
    CHECK_NOTHROW((nn::find_model<double, host>(o)));
    const auto outlined = [&] { (void)nn::outline_of<double>(device_queue<host>(), directed_graph(), o); };
    if (row.on_stages && row.convolutions > 0)
      CHECK(std::ssize(outline(o.model).layers) == 4 + row.other_layers);
    if (row.on_stages)
      CHECK_NOTHROW(outlined());
    else
      expect_error<error>("model " + row.title() + " cannot be cut into stages", outlined);
  }
}

TEST_CASE("stages are balanced as well as any cut can") {
  std::vector<double> costs;
  for (int l = 0; l < 9; ++l) costs.push_back(static_cast<double>(1 + base::random_bits(5, l, 0) % 20));
  for (int stages = 1; stages <= 9; ++stages) {
    const std::vector<std::size_t> cuts = nn::balanced_stages(costs, stages);
    REQUIRE(cuts.size() == static_cast<std::size_t>(stages) + 1);
    CHECK(cuts.front() == 0);
    CHECK(cuts.back() == 9);
    double worst = 0;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      CHECK(cuts[s] < cuts[s + 1]);
      double run = 0;
      for (std::size_t l = cuts[s]; l < cuts[s + 1]; ++l) run += costs[l];
      worst = std::max(worst, run);
    }
    CHECK(worst == least(costs, 0, stages));
  }
  expect_error<shape_error>("cannot be cut into 10 stages", [&] { nn::balanced_stages(costs, 10); });
}

TEST_CASE("given stages") {
  CHECK(nn::given_stages({2, 1, 3}, 6, 3) == std::vector<std::size_t>{0, 2, 3, 6});
  expect_error<shape_error>("2 stages with 5 layers", [] { nn::given_stages({2, 3}, 6, 2); });
  expect_error<shape_error>("at least one layer", [] { nn::given_stages({0, 6}, 6, 2); });
}

TEST_CASE("a layer's cost is that of its products and of its weights, the first one's by its features") {
  const nn::model_outline gcn = outline("gcn");
  const nn::layer_rates rates{.weight = 2, .entry = 5};
  nn::data_size size{.vertices = 100, .entries = 1000, .features = 13, .feature_width = 13};
  const std::vector<double> dense = nn::layer_costs(gcn, size, rates);
  CHECK(dense[1] == 3 * 2.0 * 72 * 100 + 5.0 * 16 * 1000);
  CHECK(dense[0] == 2 * 2.0 * 112 * 100 + 5.0 * 13 * 1000);
  size.features = 3.25;
  size.sparse_features = true;
  const std::vector<double> sparse = nn::layer_costs(gcn, size, rates);
  CHECK(sparse[0] == 2 * 5.0 * 3.25 * 112 / 13 * 100 + 5.0 * 13 * 1000);
  CHECK(sparse[1] == dense[1]);
  const nn::data_size of_graph = nn::data_size::of(directed_graph());
  CHECK(of_graph.vertices == 61);
  CHECK(of_graph.features == 13);
  CHECK(of_graph.entries == static_cast<global_index>(directed_graph().edges.size()) + 61);
}

}  // namespace test_model_outline
