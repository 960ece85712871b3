// SPDX-License-Identifier: Apache-2.0
// What decoupled training moves, how evenly work and words are spread, and what attention shares.

#include "bench/support/balance.hpp"
#include "bench/support/rmat_dataset.hpp"
#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/runs.hpp"

namespace test_decoupled {

using namespace test_support;

global_index piece(global_index n, int p, int i) { return n / p + (i < n % p ? 1 : 0); }

/// What all ranks receive when n x c goes from rows to columns, or back: everything but what stays.
global_index one_way(global_index n, global_index c, int ranks) {
  global_index stays = 0;
  for (int r = 0; r < ranks; ++r) stays += piece(n, ranks, r) * piece(c, ranks, r);
  return n * c - stays;
}

nn::training_options options_of(const std::string& model, nn::coupling how,
                                std::vector<global_index> hidden) {
  return {.model = model, .coupling = how, .hidden = std::move(hidden), .epochs = 2};
}

/// Words and messages of the training step by all-to-alls, over all ranks.
traffic redistributed(const nn::training_result& r) {
  traffic v;
  for (const comm::ledger_entry& e : r.ledger)
    if (e.kind == operation::all_to_all && (e.phase == "forward" || e.phase == "backward")) v += e.received;
  return v;
}

TEST_CASE(
    "decoupled under feature_column: four redistributions of n x classes, whatever the depth and the input "
    "width") {
  for (global_index n : {60, 61})
    for (int ranks : {2, 3, 4, 6})
      for (int layers = 1; layers <= 8; ++layers) {
        const io::dataset d = directed_graph(n);
        const nn::training_options o =
            options_of("gcn", nn::coupling::decoupled,
                       std::vector<global_index>(static_cast<std::size_t>(layers - 1), 9));
        on_threads(ranks, [&](const communicator& world) {
          const auto r = nn::train_model<double>(mesh<host>(world, {1, ranks, 1}), d, o, feature_column);
          CHECK(redistributed(r).words == 4 * one_way(n, d.classes, ranks));
          CHECK(redistributed(r).messages <= 4 * ranks * (ranks - 1));
          CHECK(r.words_received.total == r.predicted_words_received.total);
          for (const comm::ledger_entry& e : r.ledger)
            if (e.phase == "forward" || e.phase == "backward")
              CHECK((e.kind == operation::all_to_all || e.kind == operation::all_reduce));
        });
      }
  CHECK(one_way(60, 4, 4) * 4 == 3 * 60 * 4);  // (P-1)/P n C, where P divides both
}

TEST_CASE("redistributions in chunks move every row once, and losses are those without") {
  const io::dataset d = directed_graph(61);
  for (const char* model : {"gcn", "sgc", "appnp"})
    for (const int hops : {1, 2, 5})
      for (const int ranks : {2, 3, 6}) {
        if (sanitized && (hops != 2 || ranks == 6)) continue;
        nn::training_options o = options_of(model, nn::coupling::decoupled, {9});
        if (std::string(model) != "gcn") o.coupling = nn::coupling::coupled;
        o.hops = hops;
        o.epochs = 4;
        with_mesh({1, ranks, 1}, [&](const host_mesh& m) {
          const auto whole = nn::train_model<double>(m, d, o, feature_column);
          for (const int chunks : {2, 7, 50, 80}) {
            nn::training_options in_chunks = o;
            in_chunks.split_pieces = chunks;
            const auto r = nn::train_model<double>(m, d, in_chunks, feature_column);
            CHECK(std::abs(r.epochs.back().loss - whole.epochs.back().loss) <= 1e-12);
            CHECK(redistributed(r).words == redistributed(whole).words);
            if (redistributed(whole).words > 0)  // sgc propagates its input once, before the first epoch
              CHECK(redistributed(r).messages > redistributed(whole).messages);
            check_words(r);
          }
        });
      }
}

TEST_CASE(
    "Reddit's counts, widths 602-256-41, four ranks: 0.115 GB decoupled against 0.830 GB, a ratio of 7.24") {
  io::dataset d;
  d.name = "no edges";
  d.vertices = 232965;
  d.features = 602;
  d.classes = 41;
  on_mesh({1, 4, 1}, [&](const host_mesh& m) {
    const auto gradients = [&](auto words, global_index parameters) {
      return words.total - 2 * 3 * parameters - 2 * 3;
    };  // and the loss
    const global_index parameters = 602 * 256 + 256 + 256 * 41 + 41;
    const auto decoupled =
        nn::predict_words<double>(m, d, options_of("gcn", nn::coupling::decoupled, {256}), feature_column);
    const auto coupled =
        nn::predict_words<double>(m, d, options_of("gcn", nn::coupling::coupled, {256}), feature_column);
    const global_index few = gradients(decoupled, parameters), many = gradients(coupled, parameters);
    CHECK(few == 4 * one_way(232965, 41, 4));
    CHECK(many == 4 * (one_way(232965, 256, 4) + one_way(232965, 41, 4)));
    CHECK(4e-9 * static_cast<double>(few) == doctest::Approx(0.1146).epsilon(0.0005));
    CHECK(4e-9 * static_cast<double>(many) == doctest::Approx(0.830).epsilon(0.0005));
    CHECK(static_cast<double>(many) / static_cast<double>(few) == doctest::Approx(7.24).epsilon(0.0005));
  });
}

TEST_CASE(
    "decoupled gat under feature_column: two redistributions of n x classes each way, scalars, and one value "
    "an edge, whatever the depth") {
  const io::dataset d = directed_graph(37);
  for (int ranks : {2, 3, 6})
    for (int layers : {2, 3, 6}) {  // one hop may gather rows instead
      nn::training_options o = options_of("gat", nn::coupling::decoupled,
                                          std::vector<global_index>(static_cast<std::size_t>(layers - 1), 9));
      o.heads = 3;
      o.coefficients = algebra::coefficient_gradient::edges;
      on_threads(ranks, [&](const communicator& world) {
        const auto r = nn::train_model<double>(mesh<host>(world, {1, ranks, 1}), d, o, feature_column);
        const auto sum = [&](const char* phase, operation kind) {
          global_index elements = 0;
          for (const comm::ledger_entry& e : r.ledger)
            if (e.phase == phase && e.kind == kind) elements += e.received.words;
          return elements;
        };
        const global_index passages = 2 * one_way(d.vertices, d.classes, ranks);
        const int with_columns = std::min(ranks, static_cast<int>(d.classes));
        global_index edges = 0;  // to the owner of the target from every other rank that has columns
        for (int owner = 0, v = 0; owner < ranks; ++owner)
          for (global_index end = v + piece(d.vertices, ranks, owner); v < end; ++v) {
            const auto in_edges = 1 + std::count_if(d.edges.begin(), d.edges.end(),
                                                    [v](const io::edge& e) { return e.target == v; });
            edges += in_edges * (with_columns - (owner < with_columns ? 1 : 0));
          }
        const global_index scalars = (ranks - 1) * d.vertices * o.heads;
        CHECK(sum("forward", operation::all_to_all) == passages);
        CHECK(sum("forward", operation::all_gather) == 2 * scalars);
        CHECK(sum("backward", operation::all_to_all) == passages + edges);
        CHECK(sum("backward", operation::reduce_scatter) == scalars);
        for (const comm::ledger_entry& e : r.ledger)
          if (e.phase == "forward")
            CHECK((e.kind == operation::all_to_all || e.kind == operation::all_gather ||
                   e.received.words == 2 * (ranks - 1)));  // the loss
        check_words(r);
      });
    }
}

TEST_CASE("on an R-MAT graph feature_column spreads words and multiplied nonzeros evenly, row_1d does not") {
  constexpr int ranks = 4;
  for (global_index classes : {8, 6}) {
    const io::dataset d = bench::rmat_dataset(8, 12, classes);
    on_threads(ranks, [&](const communicator& world) {
      const auto columns = bench::balance_of(mesh<host>(world, {1, ranks, 1}), feature_column, d);
      const auto rows = bench::balance_of(mesh<host>(world, {ranks, 1, 1}), row_1d, d);
      if (classes % ranks == 0) {
        CHECK(columns.words.most == columns.words.least);
        CHECK(columns.multiplications.most == columns.multiplications.least);
      }
      const global_index column = columns.multiplications.least / (classes / ranks);  // of A
      CHECK(columns.multiplications.most - columns.multiplications.least <= column);
      CHECK(columns.words.most - columns.words.least <= 2 * d.vertices);  // a column, there and back
      const auto r =
          nn::train_model<double>(mesh<host>(world, {1, ranks, 1}), d,
                                  options_of("gcn", nn::coupling::decoupled, {16}), feature_column);
      CHECK(r.words_received.total == r.predicted_words_received.total);
      CHECK(rows.multiplications.ratio() > 1.05);
      CHECK(rows.words.most > rows.words.least);
    });
  }
}

TEST_CASE("attention shares two scalars a vertex and head, under every policy") {
  const io::dataset d = directed_graph();
  nn::training_options o = options_of("gat", nn::coupling::coupled, {3});
  o.heads = 4;
  on_usual_meshes(std::array{2, 4, 6, 9}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto r = nn::train_model<double>(m, d, o, policy);
    for (const comm::ledger_entry& e : r.ledger)
      if (e.phase == "forward" && e.kind == operation::all_gather && e.axis == "row+col+depth")
        CHECK(e.received.words == 2 * (o.heads + o.last_heads) * (m.shape().size() - 1) * d.vertices);
    CHECK(r.words_received.total == r.predicted_words_received.total);
  });
}

TEST_CASE("decoupled models train alike on every policy, with words as predicted, and allocate nothing") {
  const io::dataset d = directed_graph();
  for (const char* model : {"gcn", "sage", "gat"}) {
    nn::training_options o = options_of(model, nn::coupling::decoupled, {9, 7});
    o.epochs = 3;
    const double expected =
        nn::train_model<double>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d).epochs.back().loss;
    on_usual_meshes(std::array{1, 4, 6}, [&](const host_mesh& m, const partita::policy& policy) {
      std::vector<std::uint64_t> allocations;
      const auto r = nn::train_model<double>(m, d, o, policy, [&](const nn::epoch_report&) {
        allocations.push_back(m.queue().meter()->allocations());
      });
      CHECK(std::abs(r.epochs.back().loss - expected) < 1e-9 * expected);
      check_words(r);
      CHECK(allocations[1] == allocations.back());
    });
  }
}

}  // namespace test_decoupled
