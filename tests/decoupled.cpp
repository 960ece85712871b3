// What decoupled training moves, how evenly work and words are spread, and what attention shares.
#include <doctest/doctest.h>

#include "support/datasets.hpp"
#include "../examples/training/host.hpp"
#include "support/meshes.hpp"

using namespace partita;
using namespace test_support;

namespace {

global_index piece(global_index n, int p, int i) { return n / p + (i < n % p ? 1 : 0); }

/// What all ranks receive when n x c goes from rows to columns, or back: everything but what stays.
global_index one_way(global_index n, global_index c, int ranks) {
  global_index stays = 0;
  for (int r = 0; r < ranks; ++r) stays += piece(n, ranks, r) * piece(c, ranks, r);
  return n * c - stays;
}

training_options options_of(const std::string& model, coupling how, std::vector<global_index> hidden) {
  training_options o;
  o.model = model;
  o.coupling = how;
  o.hidden = std::move(hidden);
  o.epochs = 2;
  return o;
}

/// Words and messages of the training step by all-to-alls, over all ranks.
volume redistributed(const training_result& r) {
  volume v;
  for (const ledger_entry& e : r.ledger)
    if (e.kind == operation::all_to_all && (e.phase == "forward" || e.phase == "backward")) v += e.received;
  return v;
}

}  // namespace

TEST_CASE(
    "decoupled under feature_column: four redistributions of n x classes, whatever the depth and the input "
    "width") {
  for (global_index n : {60, 61})
    for (int ranks : {2, 3, 4, 6})
      for (int layers = 1; layers <= 8; ++layers) {
        const dataset d = directed_graph(n);
        const training_options o = options_of(
            "gcn", coupling::decoupled, std::vector<global_index>(static_cast<std::size_t>(layers - 1), 9));
        on_threads(ranks, [&](const communicator& world) {
          const auto r = train_model<float, feature_column>(mesh<host>(world, {1, ranks, 1}), d, o);
          CHECK(redistributed(r).elements == 4 * one_way(n, d.classes, ranks));
          CHECK(redistributed(r).messages <= 4 * ranks * (ranks - 1));
          CHECK(r.words_received.total == r.predicted_words_received.total);
          for (const ledger_entry& e : r.ledger)
            if (e.phase == "forward" || e.phase == "backward")
              CHECK((e.kind == operation::all_to_all || e.kind == operation::all_reduce));
        });
      }
  CHECK(one_way(60, 4, 4) * 4 == 3 * 60 * 4);  // (P-1)/P n C, where P divides both
}

TEST_CASE(
    "Reddit's counts, widths 602-256-41, four ranks: 0.115 GB decoupled against 0.830 GB, a ratio of 7.24") {
  dataset d;
  d.name = "no edges";
  d.vertices = 232965;
  d.features = 602;
  d.classes = 41;
  on_threads(4, [&](const communicator& world) {
    const mesh<host> m(world, {1, 4, 1});
    const auto gradients = [&](auto words, global_index parameters) {
      return words.total - 2 * 3 * parameters - 2 * 3;
    };  // and the loss
    const global_index parameters = 602 * 256 + 256 + 256 * 41 + 41;
    const auto decoupled =
        predict_words<float, feature_column>(m, d, options_of("gcn", coupling::decoupled, {256}));
    const auto coupled =
        predict_words<float, feature_column>(m, d, options_of("gcn", coupling::coupled, {256}));
    const global_index few = gradients(decoupled, parameters), many = gradients(coupled, parameters);
    CHECK(few == 4 * one_way(232965, 41, 4));
    CHECK(many == 4 * (one_way(232965, 256, 4) + one_way(232965, 41, 4)));
    CHECK(4e-9 * static_cast<double>(few) == doctest::Approx(0.1146).epsilon(0.0005));
    CHECK(4e-9 * static_cast<double>(many) == doctest::Approx(0.830).epsilon(0.0005));
    CHECK(static_cast<double>(many) / static_cast<double>(few) == doctest::Approx(7.24).epsilon(0.0005));
  });
}

TEST_CASE("feature_column spreads words and multiplied nonzeros evenly") {
  for (global_index classes : {8, 6}) {
    dataset d = directed_graph(64);
    d.classes = classes;
    on_threads(4, [&](const communicator& world) {
      const mesh<host> m(world, {1, 4, 1});
      const auto net = make_model<float, host>(m, d, options_of("gcn", coupling::decoupled, {9}),
                                               operators_of<feature_column, float>(m));
      const global_index words = net->predicted().elements - net->parameters().predicted().elements;
      const auto a = operators_of<feature_column, float>(m).cut(64, edge_share(d, world));
      const global_index columns =
          blocking::even(classes, m.shape(), nesting::cols).block(axis::col, m.at()).size();
      const auto work = summarize(world, static_cast<global_index>(a.local()->nonzeros) * columns);
      const auto traffic = summarize(world, words);
      if (classes % 4 == 0) {
        CHECK(work.total == 4 * work.max_rank);
        CHECK(traffic.total == 4 * traffic.max_rank);
      }
      CHECK(columns - classes / 4 <= 1);
      CHECK(work.max_rank <= (classes / 4 + 1) * static_cast<global_index>(a.local()->nonzeros));
    });
  }
}

TEST_CASE("attention shares two scalars a vertex and head, under every policy") {
  const dataset d = directed_graph();
  training_options o = options_of("gat", coupling::coupled, {3});
  o.heads = 4;
  for_each_mesh(std::array{2, 4, 6, 9}, [&](auto policy, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const auto r = train_model<double, decltype(policy)>(mesh<host>(world, shape), d, o);
      for (const ledger_entry& e : r.ledger)
        if (e.phase == "forward" && e.kind == operation::all_gather && e.axis == "row+col+depth")
          CHECK(e.received.elements == 2 * (o.heads + o.last_heads) * (shape.size() - 1) * d.vertices);
      CHECK(r.words_received.total == r.predicted_words_received.total);
    });
  });
}

TEST_CASE("decoupled models train alike on every policy") {
  const dataset d = directed_graph();
  for (const char* model : {"gcn", "sage"}) {
    const training_options o = options_of(model, coupling::decoupled, {9, 7});
    double expected = 0;
    for_each_mesh(std::array{1, 4, 6}, [&](auto policy, mesh_shape shape) {
      on_threads(shape.size(), [&](const communicator& world) {
        const auto r = train_model<double, decltype(policy)>(mesh<host>(world, shape), d, o);
        if (world.size() == 1 && expected == 0) expected = r.epochs.back().loss;
        CHECK(std::abs(r.epochs.back().loss - expected) < 1e-9 * expected);
      });
    });
  }
}
