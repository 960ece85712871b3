// SPDX-License-Identifier: Apache-2.0
// Learned input rows in training: gradients, the same steps in mini-batches as on the whole graph.
// Gradients of mini-batches on any ranks: mini_batch.cpp.

#include "laws/training_laws.hpp"
#include "partita/io/karate.hpp"
#include "support/mini_batches.hpp"

namespace test_train_embedding {

using namespace test_support;

using whole_trainer = nn::trainer<double, host>;

nn::training_options options_for(std::string model, std::vector<sampling::fanout> fanouts = {3, 2}) {
  nn::training_options o = batch_options(std::move(model), std::move(fanouts));
  o.epochs = 3;
  o.hops = 3;
  o.embedding = 5;
  return o;
}

struct run_result {
  std::vector<double> losses, embedding;
  nn::training_result report;
};

run_result run_of(auto& t) {
  run_result r;
  r.report = t.run();
  for (const auto& e : r.report.epochs) r.losses.push_back(e.loss);
  r.embedding = collect(*t.embedding());
  return r;
}

const io::dataset d = without_features(directed_graph(61));

TEST_CASE("gradients of an embedding match finite differences, in mini-batches and on the whole graph") {
  const io::dataset d = without_features(directed_graph(25));
  // A mesh network normalises rows, which curves much where they are small.
  double h = 1e-5, tolerance = 1e-8;
  const auto check = [&](std::span<double> x, double gradient, std::size_t k, auto loss) {
    const double before = x[k];
    x[k] = before + h;
    const double above = loss();
    x[k] = before - h;
    const double slope = (above - loss()) / (2 * h);
    x[k] = before;
    CHECK(std::abs(slope - gradient) < tolerance);
  };
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    for (const char* model : sampled_models) {
      CAPTURE(model);
      batch_trainer t(m, d, options_for(model), row_1d);
      t.gradients(1, 0);
      const std::vector<double> gradient = collected_gradient(t);
      for (std::size_t k = 0; k < gradient.size(); k += 3)
        check(t.embedding()->values(), gradient[k], k, [&] { return t.gradients(1, 0); });
    }
    for (const nn::training_options& o : every_variant(options_for("gcn"))) {
      CAPTURE(o.model);
      const bool curves = o.model == "meshgraphnet";
      h = curves ? 1e-7 : 1e-5, tolerance = curves ? 1e-7 : 1e-8;
      auto net = nn::make_model<double>(m, d, o, row_1d);
      nn::feature_matrix<double, host> x(m, d, o, net.row_blocking());
      nn::objective<double, host> labels(m, d, {}, net.row_blocking());
      dense<double, vertex_rows, host> dz(m, {d.vertices, d.classes}), dx(m, x.learned()->shape());
      const auto loss = [&] {
        return labels.loss(net.forward(x.input(), {.training = true, .epoch = 1}), dz);
      };
      loss();
      net.backward(dz, &dx);
      for (std::size_t k = 0; k < dx.values().size(); k += 7)
        check(x.learned()->values(), dx.values()[k], k, loss);
    }
  });
}

TEST_CASE("with all neighbours and one batch, steps are those of training on the whole graph") {
  for (const char* model : sampled_models) {
    CAPTURE(model);
    nn::training_options o = options_for(model, {-1, -1});
    o.mini_batch.batch = 1000;
    run_result expected;
    on_mesh({2, 2, 1}, [&](const host_mesh& m) {
      whole_trainer t(m, d, o, nn::make_model<double>(m, d, o, grid_2d));
      const run_result r = run_of(t);
      if (m.rank() == 0) expected = r;
      CHECK(r.report.words_received.total == r.report.predicted_words_received.total);
    });
    for (const placement how : {placement::owner, placement::column}) {
      o.mini_batch.placement = how;
      on_threads(3, [&](const communicator& world) {
        batch_trainer t(mesh<host>(world, {3, 1, 1}), d, o, row_1d);
        const run_result found = run_of(t);
        CHECK(largest_difference(found.losses, expected.losses) < 1e-10);
        CHECK(largest_difference(found.embedding, expected.embedding) < 1e-9);
        CHECK(found.report.epochs.back().test_accuracy == expected.report.epochs.back().test_accuracy);
      });
    }
  }
}

TEST_CASE("automatic placement counts the gradients that travel back") {
  nn::training_options o = options_for("gcn");
  o.mini_batch.placement = placement::automatic;
  o.mini_batch.batch = 1000;
  o.epochs = 1;
  on_mesh({4, 1, 1}, [&](const host_mesh& m) {
    const nn::training_result automatic = batch_trainer(m, d, o, row_1d).run();
    for (const auto& [how, words] : automatic.mini_batch->candidates) {
      CAPTURE(static_cast<int>(how));
      nn::training_options chosen = o;
      chosen.mini_batch.placement = how;
      batch_trainer t(m, d, chosen, row_1d);
      // The rest is the sum of the parameters' gradients, and the loss and counts, a few words.
      const global_index rest = t.run().words_received.max_rank - words;
      const global_index parameters = t.parameters().values().shape().cols;
      CHECK(rest >= 2 * parameters * 3 / 4);
      CHECK(rest < 2 * parameters * 3 / 4 + 16);
    }
  });
}

TEST_CASE("an embedding learns the karate club, whole and in mini-batches") {
  const io::dataset club = without_features(io::karate_club());
  nn::training_options o = options_for("gcn", {-1, 5});
  o.embedding = 8;
  o.epochs = 60;
  o.dropout = 0;
  o.mini_batch.batch = 2;
  nn::training_options whole = o;
  whole.mini_batch.batch = 0;
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const auto falls = [](const nn::training_result& r) {
      CHECK(r.epochs.back().loss < 0.25 * r.epochs.front().loss);
    };
    falls(nn::train_model<double>(m, club, whole, row_1d));
    falls(batch_trainer(m, club, o, row_1d).run());
  });
}

TEST_CASE("without features there must be an embedding") {
  const io::dataset d = without_features(directed_graph(25));
  nn::training_options o = options_for("gcn");
  o.embedding = 0;
  nn::training_options whole = o;
  whole.mini_batch.batch = 0;
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    CHECK_THROWS_WITH_AS(nn::train_model<double>(m, d, whole, row_1d),
                         "directed graph has no features, and no embedding is to be learned in their place",
                         input_error);
    CHECK_THROWS_AS(batch_trainer(m, d, o, row_1d), input_error);
  });
}

}  // namespace test_train_embedding
