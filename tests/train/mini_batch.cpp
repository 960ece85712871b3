// SPDX-License-Identifier: Apache-2.0
// Mini-batches: what is computed does not depend on placement, ranks and micro-batches.

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/mini_batches.hpp"
#include "support/recorded_sage.hpp"
#include "support/runs.hpp"

namespace test_mini_batch {

using namespace test_support;

struct step_result {
  double loss = 0;
  std::vector<double> gradients, of_embedding = {1};
};

step_result step_of(int ranks, const io::dataset& d, const nn::training_options& o) {
  step_result result;
  with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
    batch_trainer t(m, d, o, row_1d);
    const double loss = t.gradients(2, t.iterations() > 1 ? 1 : 0);
    const auto gradients = t.parameters().gradients().values();
    const std::vector<double> of_embedding =
        o.embedding > 0 ? collected_gradient(t) : std::vector<double>(1, 1);
    if (m.rank() == ranks - 1) result = {loss, {gradients.begin(), gradients.end()}, of_embedding};
  });
  return result;
}
void check_step(const step_result& found, const step_result& expected, double tolerance = 1e-12) {
  CHECK(std::abs(found.loss - expected.loss) < tolerance);
  CHECK(largest_difference(found.gradients, expected.gradients) < tolerance);
  CHECK(largest_difference(found.of_embedding, expected.of_embedding) < tolerance);
}

const io::dataset d = directed_graph(61), bare = without_features(d);

TEST_CASE("losses and gradients are those of one rank, for every placement, rank and micro-batch count") {
  for (const global_index embedding : {0, 5})
    for (const char* model : sampled_models)
      for (const std::vector<sampling::fanout>& fanouts : {std::vector<sampling::fanout>{3, 2}, {-1, 4}}) {
        nn::training_options o = batch_options(model, fanouts);
        o.embedding = embedding;
        const io::dataset& data = embedding > 0 ? bare : d;
        const step_result expected = step_of(1, data, o);
        CHECK(expected.loss > 0.1);
        CHECK(*std::ranges::max_element(expected.of_embedding) > 1e-4);
        for (const placement how : placements)
          for (const int ranks : {1, 2, 3, 4, 8})
            for (const int parts : {1, 2, 5}) {
              const bool no_roots = ranks == 8 && parts == 5 && o.model == "gcn";  // in some parts
              if (sanitized && (ranks != 3 || parts != 2) && !no_roots) continue;
              INFO("model ", model, ", how ", static_cast<int>(how), ", ranks ", ranks, ", parts ", parts);
              o.mini_batch.placement = how;
              o.mini_batch.micro_batches = parts;
              check_step(step_of(ranks, data, o), expected);
            }
      }
}

/// A step on the whole graph with all training vertices.
step_result whole_step(const io::dataset& data, const nn::training_options& o) {
  step_result found;
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    auto net = nn::make_model<double>(m, data, o, row_1d);
    const auto x = graph::local_features<double>(m, data, false);
    nn::objective<double, host> labels(m, data, {}, net.row_blocking());
    dense<double, vertex_rows, host> dz(m, {data.vertices, data.classes});
    found.loss =
        labels.loss(net.forward(algebra::operand<double, host>(x), {.training = true, .epoch = 2}), dz);
    net.backward(dz);
    found.gradients = collect(net.parameters().gradients());
  });
  return found;
}

TEST_CASE(
    "with all neighbours and one batch of all training vertices, gradients are those of the whole graph") {
  for (const char* model : sampled_models) {
    CAPTURE(model);
    nn::training_options o = batch_options(model, {-1, -1});
    o.mini_batch.batch = 1000;
    const step_result expected = whole_step(d, o);
    for (const placement how : placements) {
      o.mini_batch.placement = how;
      with_mesh({3, 1, 1}, [&](const host_mesh& m) {
        batch_trainer t(m, d, o, row_1d);
        CHECK(t.iterations() == 1);
        CHECK(std::abs(t.gradients(2, 0) - expected.loss) < 1e-10);
        CHECK(largest_difference(collect(t.parameters().gradients()), expected.gradients) < 1e-10);
      });
    }
  }
}

bool reads_types(std::string_view model) { return model == "rgcn" || model == "rgat"; }

TEST_CASE(
    "relations and vectors of edges: steps on all neighbours are whole ones, and others those of one rank") {
  const io::dataset typed = with_edge_data(d);
  for (const char* model : {"rgcn", "rgat", "gine", "gatv2", "transformer", "meshgraphnet"}) {
    nn::training_options o = batch_options(model, {-1, -1});
    o.bases = o.model == "rgcn" ? 2 : 0;
    o.layers = 2;
    o.mini_batch.batch = 1000;
    check_step(step_of(3, typed, o), whole_step(typed, o));
    o = batch_options(model);
    o.layers = 2;
    if (reads_types(model)) o.mini_batch.fanouts = {{3, 0, 1}, 2};
    if (o.model == "meshgraphnet") o.mini_batch.fanouts = {3};
    const step_result expected = step_of(1, typed, o);
    CHECK(expected.loss > 0.1);
    for (const placement how : {placement::even, placement::owner, placement::column_gather})
      for (const int ranks : {2, 3, 6})
        for (const bool cut : {false, true}) {
          INFO("model ", model, ", how ", static_cast<int>(how), ", ranks ", ranks, ", cut ", cut);
          o.mini_batch.placement = how;
          o.mini_batch.cut_graph = cut;
          check_step(step_of(ranks, typed, o), expected);
        }
    o.mini_batch.cut_graph = false;
    with_mesh({3, 1, 1}, [&](const host_mesh& m) { check_words(batch_trainer(m, typed, o, row_1d).run()); });
    o.mini_batch.placement = placement::column;
    CHECK_THROWS_WITH(step_of(1, typed, o), doctest::Contains("not possible with model "));
  }
}

TEST_CASE("a layer written forward only gives what the same layer does, by rows and by slices of columns") {
  nn::add_model(recorded_sage());
  nn::training_options o = batch_options("recorded sage");
  for (const placement how : {placement::even, placement::column}) {
    o.mini_batch.placement = how;
    o.model = "sage";
    const step_result expected = step_of(1, d, o);
    o.model = "recorded sage";
    check_step(step_of(3, d, o), expected);
  }
}

TEST_CASE("other samplers: layers as one rank has them; walks alike for every placement of equal shares") {
  nn::training_options o = batch_options("gcn", {20, 15});
  o.mini_batch.sampler = nn::batch_sampler::layers;
  const step_result one_rank = step_of(1, d, o);
  for (const placement how : placements) {
    o.mini_batch.placement = how;
    o.mini_batch.micro_batches = 2;
    check_step(step_of(3, d, o), one_rank);
  }
  o.mini_batch.sampler = nn::batch_sampler::walks;
  o.mini_batch.fanouts = {3};
  o.mini_batch.presampled = 4;
  o.mini_batch.placement = placement::even;
  const step_result expected = step_of(3, d, o);
  CHECK(largest_difference(expected.gradients, one_rank.gradients) > 1e-6);
  for (const placement how : {placement::column, placement::column_gather})
    for (const bool cut : {false, true}) {
      o.mini_batch.placement = how;
      o.mini_batch.cut_graph = cut;
      check_step(step_of(3, d, o), expected);
    }
}

TEST_CASE("options that would be ignored are refused; one fan-out serves all layers") {
  nn::training_options o = batch_options("gcn", {3, 3});
  const step_result expected = step_of(1, d, o);
  o.mini_batch.fanouts = {3};
  CHECK(step_of(1, d, o).gradients == expected.gradients);
  const mesh<host> m(self::world(), {1, 1, 1});
  const auto refused = [&](const char* why) { CHECK_THROWS_WITH(batch_trainer(m, d, o, row_1d), why); };
  o.recompute = nn::activation_checkpointing::always;
  refused("activation checkpointing is not available in mini-batches");
  o.recompute = nn::activation_checkpointing::never;
  o.mini_batch.fanouts = {3, 3, 3};
  refused("3 fan-outs are given; a model of 2 layers needs one or 2");
  o.mini_batch.fanouts = {};
  refused("0 fan-outs are given; a model of 2 layers needs one or 2");
  o.mini_batch.fanouts = {3, 3};
  o.mini_batch.fanouts = {3, {3, 2}};
  refused("a fan-out of 2 numbers cannot serve a graph of 1 relations: it has 1, or one for each of them");
  o.mini_batch.sampler = nn::batch_sampler::layers;
  refused("sizes of layers and lengths of walks are one number for all relations");
  o.mini_batch.sampler = nn::batch_sampler::walks;
  refused("2 fan-outs are given; walks have one length");
  o.mini_batch.replace = true;
  refused("only neighbours can be drawn with replacement, not layers or walks");
  o.coupling = nn::coupling::decoupled;
  refused(
      "model gcn in its decoupled form cannot be trained on sampled neighbours; gcn, sage, gin, gat, "
      "gine, gatv2, transformer, meshgraphnet, rgcn and rgat can, coupled and with mean aggregation");
  CHECK_THROWS_WITH((nn::train_model<double>(m, d, o, row_1d)),
                    "train_model trains on the whole graph; for mini-batches and stages call nn::train");
}

TEST_CASE("walks that visit everything, not normalised, give the gradients of the whole graph") {
  io::dataset d = directed_graph(61);
  for (auto& part : d.split.edit()) part = 1;
  nn::training_options o = batch_options("gcn", {1});
  o.mini_batch.sampler = nn::batch_sampler::walks;
  o.mini_batch.presampled = 0;
  o.mini_batch.batch = 1000;
  o.dropout = 0;
  const step_result walked = step_of(1, d, o);
  o.mini_batch.sampler = nn::batch_sampler::neighbours;
  o.mini_batch.fanouts = {-1, -1};
  check_step(walked, step_of(1, d, o));
}

TEST_CASE("whole runs: losses, embeddings, accuracies and words; exact and sampled scores; cut graphs") {
  for (const global_index embedding : {0, 5}) {
    std::vector<double> losses, rows;
    double accuracy = 0;
    for (const placement how : placements)
      for (const int ranks : {1, 4})
        for (const bool cut : {false, true}) {
          INFO("how ", static_cast<int>(how), ", ranks ", ranks, ", cut ", cut, ", embedding ", embedding);
          nn::training_options o = batch_options("sage", {3, 2});
          o.embedding = embedding;
          o.mini_batch.placement = how;
          o.mini_batch.cut_graph = cut && embedding == 0;
          o.mini_batch.sampled_scores = cut;
          o.mini_batch.micro_batches = embedding > 0 ? ranks : 1;
          with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
            batch_trainer t(m, embedding > 0 ? bare : d, o, row_1d);
            const nn::training_result r = t.run();
            const std::vector<double> x = embedding > 0 ? collect(*t.embedding()) : std::vector<double>(1, 0);
            if (m.rank() != 0) return;
            std::vector<double> found;
            for (const auto& e : r.epochs) found.push_back(e.loss);
            if (losses.empty()) losses = found, rows = x, accuracy = r.epochs.back().test_accuracy;
            CHECK(largest_difference(found, losses) < 1e-12);
            CHECK(largest_difference(x, rows) < 1e-11);
            CHECK(r.mini_batch->iterations == 3);
            CHECK(r.mini_batch->placement == how);
            if (!o.mini_batch.cut_graph) check_words(r);
            if (!cut) CHECK(r.epochs.back().test_accuracy == accuracy);
            CHECK(r.epochs.back().test_accuracy > 0);
          });
        }
  }
}

/// The largest sizes of a rank's samples and exchanges over an epoch.
struct largest_sizes {
  std::size_t inputs = 0, targets = 0, roots = 0, first_entries = 0, last_entries = 0, sent = 0, received = 0;
};

largest_sizes sizes_of(const io::dataset& d, const nn::training_options& o, const mesh<host>& m, int epochs) {
  const auto graph = nn::sampled_graph<double>(m, d, o, graph::propagation_matrix::mean_normalized);
  sampling::neighbour_sampler<double> draw(graph, {.fanouts = o.mini_batch.fanouts, .seed = o.seed});
  nn::batch_order order(nn::vertices_in(d, io::split_part::train), o.mini_batch.batch, o.seed);
  const blocking rows = blocking::even(d.vertices, m.shape(), nesting::rows);
  largest_sizes largest;
  const auto raise = [](std::size_t& to, std::size_t by) { to = std::max(to, by); };
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    order.begin(static_cast<std::uint64_t>(epoch));
    for (std::size_t i = 0; i < order.iterations(); ++i) {
      const auto shares = sampling::equal_shares(order.batch(i), m.size());
      for (int q = 0; q < m.size(); ++q) {
        sampling::sample<double> s;
        draw(shares[static_cast<std::size_t>(q)], static_cast<std::uint64_t>(epoch), s);
        std::vector<std::size_t> owned(static_cast<std::size_t>(m.size()), 0);
        for (const global_index v : s.vertices) ++owned[rows.owner(vertex_rows.rows, v)];
        const std::size_t own = owned[static_cast<std::size_t>(q)], remote = s.vertices.size() - own;
        if (q != m.rank()) {
          raise(largest.sent, owned[static_cast<std::size_t>(m.rank())]);
          continue;
        }
        raise(largest.received, remote);
        raise(largest.inputs, s.vertices.size());
        raise(largest.targets, static_cast<std::size_t>(s.blocks[0].rows));
        raise(largest.roots, static_cast<std::size_t>(s.blocks[1].rows));
        raise(largest.first_entries, s.blocks[0].columns.size());
        raise(largest.last_entries, s.blocks[1].columns.size());
      }
    }
  }
  return largest;
}

TEST_CASE("memory is that of a closed form, and steady iterations allocate nothing") {
  if (sanitized) return;  // of sizes: what runs here runs above, on a smaller graph
  io::dataset d = directed_graph(1200);
  d.features = 64;
  d.vertex_features = io::feature_table(1200, 64, std::vector<float>(1200 * 64, 0.5F));
  nn::training_options o = batch_options("sage", {4, 5});
  o.hidden = {32};
  o.dropout = 0;
  o.mini_batch.batch = 80;  // of 400 training vertices
  o.mini_batch.sampled_scores = true;
  constexpr int epochs = 8;
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const largest_sizes n = sizes_of(d, o, mesh<host>(m.world(), {2, 1, 1}), epochs);
    batch_trainer t(m, d, o, row_1d);
    const memory::memory_meter& meter = *m.queue().meter();
    std::size_t before = 0;
    for (int e = 1; e <= epochs; ++e) {
      before = meter.allocations();
      t.epoch(e);
    }
    CHECK(meter.allocations() - before <= 2);  // buffers may still grow
    (void)t.gradients(3, 1);
    before = meter.allocations();
    for (int again = 0; again < 3; ++again) (void)t.gradients(3, 1);
    CHECK(meter.allocations() == before);

    const std::size_t f = 64, h = 32, c = 5, weights = 2 * f * h + h + 2 * h * c + c;
    const std::size_t elements = 600 * f                          // X
                                 + 2 * (n.sent + n.received) * f  // of two iterations
                                 + n.inputs * f                   // H_0
                                 + n.targets * (f + 2 * h)        // A H_0, H_1 and its gradient
                                 + n.roots * (2 * h + 3 * c)  // A H_1, its gradient; logits, gradient, scores
                                 + n.first_entries + n.last_entries  // blocks
                                 + 5 * weights;  // values, gradients, their sum, two moments
    const std::size_t indices = 2 * n.sent + n.first_entries + n.targets + n.last_entries + 4 * n.roots + 2;
    const auto closed_form = static_cast<double>(8 * elements + 4 * indices + 2 * 8 * n.inputs);
    CHECK(static_cast<double>(meter.peak()) <= 1.1 * closed_form);
  });
}

}  // namespace test_mini_batch
