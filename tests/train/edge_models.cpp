// SPDX-License-Identifier: Apache-2.0
// Models that read vectors of edges give the golden values of tests/golden under every policy, and cost what
// is predicted.
#include <deque>
#include <doctest/doctest.h>

#include "examples/golden/compare.hpp"
#include "partita/compiled/host.hpp"
#include "partita/nn/conv/nn_conv.hpp"
#include "partita/train/policy_cost.hpp"
#include "support/datasets.hpp"
#include "support/edge_tapes.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"
#include "support/typed_vertices.hpp"

namespace test_edge_models {

using namespace partita;
using namespace test_support;

/// Those of a folder of tests/golden: of models, or of layers that are no model.
std::vector<golden_case> cases(const char* in = "") {
  const char* folder = std::getenv("PARTITA_OWN_GOLDEN");
  REQUIRE_MESSAGE(folder != nullptr, "PARTITA_OWN_GOLDEN names no folder of golden cases");
  return read_golden_cases(std::filesystem::path(folder) / in);
}

TEST_CASE("logits, loss and every gradient are those of PyTorch") {
  const std::vector<golden_case> all = cases();
  CHECK(all.size() >= 12);
  on_usual_meshes(std::array{1, 2, 3, 6, 8, 9}, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : all) {
      const auto errors = compare_golden<double>(m, c, c.options, policy);
      CHECK(errors.parts.size() == 2 + c.values.size());
      for (const auto& [what, error] : errors.parts)
        CHECK_MESSAGE(error < 1e-10, c.name, ", ", std::string(policy.name), " on ", to_string(m.shape()),
                      ": ", what, " is off by ", error);
    }
  });
}

/// Relu between layers of nn_conv.
template <class T, class Device>
nn::model<T, Device> nn_convs(const sparse<T, dynamic_layout, Device>& a, const io::dataset& data,
                              const std::vector<global_index>& widths, algebra::message_reduction how) {
  const nn::builder<T, Device> b(a, {});
  const auto vectors = std::make_shared<const edge_matrix<T, Device>>(
      graph::edge_features(a, data, graph::repeated_edges::summed));
  return {b, nn::chain<nn::relu>(b, widths, [&](std::size_t, auto in, auto out, const auto& with) {
            return nn::nn_conv<T, Device>(a, vectors, in, out, with, how);
          })};
}

TEST_CASE("layers whose weights are functions of edges give the values of PyTorch") {
  const std::vector<golden_case> all = cases("layers");
  CHECK(all.size() == 2);
  on_usual_meshes(std::array{1, 3, 8}, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : all) {
      const auto a = graph::propagation_matrices<double, host>(m, c.graph, {}, policy)
                         .matrix_for(graph::propagation_matrix::adjacency);
      using enum algebra::message_reduction;
      auto net =
          nn_convs(a, c.graph, nn::layer_widths(c.graph, c.options), c.name == "nnconv-skewed" ? mean : sum);
      take_golden_values(net, c);
      for (const auto& [what, error] : compare_golden(net, c).parts)
        CHECK_MESSAGE(error < 1e-10, c.name, ", ", std::string(policy.name), ": ", what, " is off by ",
                      error);
    }
  });
}

/// Layers of gine in verbs, of which the edge vectors are a variable.
host_variable gine_of(host_tape& t, const host_pattern& a, host_variable h, host_edge_variable e,
                      const golden_case& c, std::deque<host_dense<double, replicated>>& kept) {
  const auto widths = nn::layer_widths(c.graph, c.options);
  const auto parameter = [&](const std::string& name, matrix_shape shape) {
    const std::vector<double>& given = c.values.at(name);
    kept.push_back(generate<replicated, double>(a.mesh(), shape, [&](global_index i, global_index j) {
      return given[static_cast<std::size_t>(i * shape.cols + j)];
    }));
    return t.parameter(kept.back());
  };
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string number = std::to_string(l);
    const global_index in = widths[l], out = widths[l + 1];
    const auto vectors = gemm(e, parameter("We" + number, {e.columns(), in}));
    const auto sum =
        messages(a, redistribute(h, algebra::multiplied_layout(a, vertex_rows)), {.edges = vectors},
                 nn::detail::gine_message{1}, {.heads = base::to_local(in, "the width")});
    const auto s = (1 + c.options.epsilon) * h + redistribute(sum, vertex_rows);
    const auto inner =
        relu(add_row(parameter("ba" + number, {1, out}), gemm(s, parameter("Wa" + number, {in, out}))));
    h = add_row(parameter("bb" + number, {1, out}), gemm(inner, parameter("Wb" + number, {out, out})));
    if (l + 2 < widths.size()) h = relu(h);
  }
  return h;
}

TEST_CASE("gradients of edge vectors are those of PyTorch") {
  std::vector<golden_case> all = cases();
  std::erase_if(all, [](const golden_case& c) {
    return c.options.model != "gine" || !c.gradients.contains("edge_features");
  });
  CHECK(all.size() == 2);
  on_usual_meshes(std::array{1, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : all) {
      const auto a = graph::propagation_matrices<double, host>(m, c.graph, {}, policy)
                         .matrix_for(graph::propagation_matrix::adjacency);
      const host_edges vectors = graph::edge_features(a, c.graph, graph::repeated_edges::summed);
      const auto x = generate<vertex_rows, double>(m, {c.x.shape[0], c.x.shape[1]}, [&](auto i, auto j) {
        return c.x.values[static_cast<std::size_t>(i * c.x.shape[1] + j)];
      });
      std::deque<host_dense<double, replicated>> kept;
      host_tape t(m);
      const auto e = t.input(vectors);
      const auto loss = autodiff::loss(gine_of(t, a, t.constant(x), e, c, kept),
                                       [&](const auto& z, auto& dz) { return golden_loss(c, z, dz); });
      t.forward();
      t.backward(loss);
      CHECK(loss.value() == doctest::Approx(c.loss).epsilon(1e-10));
      const auto& expected = c.gradients.at("edge_features");
      CHECK(largest_error(t.gradient(e), [&](auto v, auto u, auto h) {
              const auto of = std::ranges::find(c.graph.edges, io::edge{u, v});
              return expected[static_cast<std::size_t>((of - c.graph.edges.begin()) * vectors.heads() + h)];
            }) < 1e-10);
    }
  });
}

/// With vectors of edges, the loops of two vertices, and an edge that comes twice.
io::dataset with_vectors() {
  io::dataset d = directed_graph();
  std::vector<io::edge> edges(d.edges.begin(), d.edges.end());
  edges.insert(edges.end(), {{2, 2}, {3, 3}, edges.front()});
  std::vector<double> values;
  for (std::size_t e = 0; e < 2 * edges.size(); ++e) values.push_back(double(e % 7) / 7 - 0.4);
  d.edge_features = {std::ssize(edges), 2, std::move(values)};
  d.edges = std::move(edges);
  d.edge_weights = {};
  return d;
}

TEST_CASE("the loss falls, and words are as predicted") {
  const io::dataset d = with_vectors();
  for (const char* model : {"gine", "gatv2", "transformer", "meshgraphnet"})
    for (const policy& p : named_policies) {
      nn::training_options o;
      o.model = model;
      o.hidden = {8};
      o.heads = 2;
      o.layers = 2;
      o.epochs = 12;
      on_threads(6, [&](const communicator& world) {
        const host_mesh m(world, default_mesh(p, world.size()));
        const nn::policy_cost cost = nn::predict_cost<double>(m, d, o, p);
        const nn::training_result run = nn::train_model<double>(m, d, o, p);
        CHECK_MESSAGE(cost.words.total == run.words_received.total, model, ", ", std::string(p.name));
        CHECK(cost.words.max_rank == run.words_received.max_rank);
        CHECK(run.epochs.back().loss < run.epochs.front().loss);
      });
    }
}

TEST_CASE("models of relations train on several types of vertices, with the same losses on any mesh") {
  const io::dataset d = typed_vertices().graph();
  for (const char* model : {"rgcn", "rgat"}) {
    nn::training_options o;
    o.model = model;
    o.hidden = {8};
    o.heads = 2;
    o.layers = 2;
    o.epochs = 20;
    o.inverse_relations = true;
    std::vector<double> expected;
    for (const auto& [ranks, p] : {std::pair(1, row_1d), std::pair(3, row_1d), std::pair(4, grid_2d)})
      on_threads(ranks, [&](const communicator& world) {
        const host_mesh m(world, default_mesh(p, world.size()));
        const nn::training_result run = nn::train_model<double>(m, d, o, p);
        if (world.rank() != 0) return;
        std::vector<double> losses;
        for (const nn::epoch_report& e : run.epochs) losses.push_back(e.loss);
        if (expected.empty()) expected = losses;
        CHECK(losses.back() < losses.front());
        CHECK(largest_difference(losses, expected) < 1e-12);
      });
  }
}

TEST_CASE("stages, mini-batches and rounded operands are refused by name") {
  const io::dataset d = with_vectors();
  for (const char* model : {"gine", "gatv2", "transformer", "meshgraphnet"}) {
    const nn::model_row* const row = nn::find_row(model, nn::coupling::coupled, nn::aggregation::mean);
    REQUIRE(row != nullptr);
    CHECK_FALSE(row->on_stages);
    CHECK(row->is_on_blocks());
    CHECK(row->reads_edge_vectors);
    nn::training_options o;
    o.model = model;
    o.operands = nn::operand_format::bfloat16;
    with_mesh({1, 1, 1}, [&](const host_mesh& m) {
      expect_error<error>(std::string("model ") + model + " has products whose operands are not rounded",
                          [&] { nn::make_model<float>(m, d, o, row_1d); });
    });
  }
}

}  // namespace test_edge_models
