// SPDX-License-Identifier: Apache-2.0
// Models that read vectors of edges give the golden values of tests/golden under every policy, and cost what
// is predicted.
#include <doctest/doctest.h>

#include "examples/golden/compare.hpp"
#include "partita/compiled/host.hpp"
#include "partita/nn/conv/nn_conv.hpp"
#include "partita/train/policy_cost.hpp"
#include "support/datasets.hpp"
#include "support/edge_tapes.hpp"
#include "support/layers.hpp"
#include "support/matrices.hpp"
#include "support/meshes.hpp"
#include "support/typed_vertices.hpp"

namespace test_edge_models {

using namespace partita;
using namespace test_support;

const std::vector<int> few_ranks = sanitized ? std::vector{1, 6} : std::vector{1, 2, 3, 6, 8, 9};

/// Those of a folder of tests/golden: of models, or of layers that are no model.
std::vector<golden_case> cases(const char* in = "") {
  const char* folder = std::getenv("PARTITA_OWN_GOLDEN");
  REQUIRE_MESSAGE(folder != nullptr, "PARTITA_OWN_GOLDEN names no folder of golden cases");
  return read_golden_cases(std::filesystem::path(folder) / in);
}

TEST_CASE("logits, loss and every gradient are those of PyTorch") {
  const std::vector<golden_case> all = cases();
  CHECK(all.size() >= 12);
  on_usual_meshes(few_ranks, [&](const host_mesh& m, const partita::policy& policy) {
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

TEST_CASE("gradients of such layers agree with finite differences, with words as predicted") {
  constexpr global_index n = 11, in = 3, out = 2;
  using enum algebra::message_reduction;
  for (const auto& [how, p, ranks] : {std::tuple(sum, row_1d, 1), std::tuple(mean, row_1d, 3),
                                      std::tuple(sum, grid_2d, 6), std::tuple(mean, split_3d, 8)})
    with_mesh(default_mesh(p, ranks), [&](const host_mesh& m) {
      const host_pattern a = distribute(m, p, {n, n}, share(sparse_entries({n, n}, 3), m));
      const auto vectors = std::make_shared<host_edges>(a, 2);
      fill_edges(*vectors, edge_entry);
      rows_matrix h = generate<vertex_rows, double>(m, {n, in}, field(0));
      const host_builder b = in_the_middle(h);
      check_gradients(b, nn::nn_conv<double, host>(a, vectors, in, out, b, how), h);
    });
}

/// What layers on a tape are made with: the parameters of a case.
class given_parameters {
 public:
  given_parameters(host_tape& t, const golden_case& c) : tape_(&t), case_(&c) {}

  host_variable glorot(const std::string& name, matrix_shape shape) const {
    const std::vector<double>& given = case_->values.at(name + std::to_string(made_[name]++));
    const auto w = std::make_shared<host_dense<double, replicated>>(generate<replicated, double>(
        tape_->mesh(), shape,
        [&](global_index i, global_index j) { return given[static_cast<std::size_t>(i * shape.cols + j)]; }));
    tape_->own(w);
    return tape_->parameter(*w);
  }
  host_variable filled(const std::string& name, matrix_shape shape, double = 0) const {
    return glorot(name, shape);
  }
  host_edge_variable dropout(host_edge_variable e, double) const { return e; }
  template <class Matrix>
  auto constant(std::shared_ptr<const Matrix> x) const {
    tape_->own(x);
    return tape_->constant(*x);
  }
  const nn::model_options& options() const { return options_; }

 private:
  host_tape* tape_;
  const golden_case* case_;
  mutable std::map<std::string, int> made_;
  nn::model_options options_;
};

/// The logits of a case, of which the edge vectors are a variable.
host_variable logits_of(const given_parameters& make, const host_pattern& a, host_variable h,
                        host_edge_variable e, const golden_case& c) {
  const nn::training_options& o = c.options;
  const std::optional vectors(e);
  if (o.model == "meshgraphnet")
    return nn::detail::mesh_graph(make, h, vectors, o.hidden[0], c.classes(), [&](const auto& with, auto at) {
      for (int l = 0; l < o.layers; ++l) at = nn::mesh_graph_block(with, a, at, o.hidden[0]);
      return at;
    });
  const auto widths = nn::layer_widths(c.graph, o);
  for (std::size_t l = 1; l < widths.size(); ++l) {
    const bool last = l + 1 == widths.size();
    const nn::attention_heads heads{.count = o.heads, .averaged = last};
    const global_index out = widths[l], of_heads = last ? out : o.heads * out;
    if (o.model == "gine") h = nn::detail::gine(make, a, h, vectors, out, o.epsilon);
    if (o.model == "gatv2") h = nn::detail::gatv2(make, a, h, vectors, of_heads, heads);
    if (o.model == "transformer") h = nn::detail::transformer(make, a, h, vectors, of_heads, heads);
    if (!last && o.model == "gatv2")
      h = transform(h, [](auto x) {
        using std::exp;
        return x > 0 ? x : exp(x) - 1;
      });
    else if (!last)
      h = relu(h);
  }
  return h;
}

TEST_CASE("gradients of edge vectors are those of PyTorch") {
  std::vector<golden_case> all = cases();
  std::erase_if(all, [](const golden_case& c) { return !c.gradients.contains("edge_features"); });
  CHECK(all.size() == 8);
  on_usual_meshes(few_ranks, [&](const host_mesh& m, const partita::policy& policy) {
    for (const golden_case& c : all) {
      const auto a = graph::propagation_matrices<double, host>(m, c.graph, {}, policy)
                         .matrix_for(nn::find_row(c.options)->multiplies_with);
      const host_edges vectors = graph::edge_features(a, c.graph, graph::repeated_edges::summed);
      const auto x = generate<vertex_rows, double>(m, {c.x.shape[0], c.x.shape[1]}, [&](auto i, auto j) {
        return c.x.values[static_cast<std::size_t>(i * c.x.shape[1] + j)];
      });
      host_tape t(m);
      const auto e = t.input(vectors);
      const auto loss = autodiff::loss(logits_of(given_parameters(t, c), a, t.constant(x), e, c),
                                       [&](const auto& z, auto& dz) { return golden_loss(c, z, dz); });
      t.forward();
      m.ledger().clear();
      t.backward(loss);
      same(heard(m), t.predicted_backward(), "backward");
      CHECK(loss.value() == doctest::Approx(c.loss).epsilon(1e-10));
      const auto& expected = c.gradients.at("edge_features");
      double error = 0;
      for_each_value(t.gradient(e), [&](auto v, auto u, auto h, double value) {
        const auto of = std::ranges::find(c.graph.edges, io::edge{u, v});
        if (of == c.graph.edges.end()) return;  // an added loop
        const auto at = static_cast<std::size_t>((of - c.graph.edges.begin()) * vectors.heads() + h);
        error = std::max(error, std::abs(value - expected[at]));
      });
      CHECK_MESSAGE(error < 1e-10, c.name, ", ", std::string(policy.name), " on ", to_string(m.shape()));
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
    o.operands = nn::operand_precision::bfloat16;
    with_mesh({1, 1, 1}, [&](const host_mesh& m) {
      expect_error<error>(std::string("model ") + model + " supports neither bf16 operands nor encoded rows",
                          [&] { nn::make_model<float>(m, d, o, row_1d); });
    });
  }
}

}  // namespace test_edge_models
