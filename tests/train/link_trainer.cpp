// SPDX-License-Identifier: Apache-2.0
// Training on links: the serial losses and scores on every policy and mesh, words as predicted, and ranks far
// above chance.
#include "partita/train/link_trainer.hpp"

#include <doctest/doctest.h>
#include <set>

#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "support/meshes.hpp"

namespace test_link_trainer {

using namespace partita;
using test_support::host_mesh;

nn::training_options options_of(nn::link_decoding decoder, int epochs,
                                nn::link_loss loss = nn::link_loss::bce) {
  nn::training_options o{.hidden = {8}, .epochs = epochs, .weight_decay = 0, .dropout = 0.2, .seed = 2};
  o.links = {.width = 6, .decoder = decoder, .negatives = 2, .loss = loss, .hits = 3};
  return o;
}

const io::dataset& karate() {
  static const io::dataset data =
      graph::split_links(io::karate_club(), {.validation = 0.1, .test = 0.15, .columns = 6, .seed = 2});
  return data;
}

nn::training_result serial(const nn::training_options& o) {
  const host_mesh alone(self::world(), {1, 1, 1});
  return nn::link_trainer<double, host>(alone, karate(), o, row_1d).run();
}

void check_same(const nn::training_result& found, const nn::training_result& expected) {
  REQUIRE(found.epochs.size() == expected.epochs.size());
  for (std::size_t e = 0; e < expected.epochs.size(); ++e) {
    CHECK(found.epochs[e].loss == doctest::Approx(expected.epochs[e].loss).epsilon(1e-12));
    CHECK(found.epochs[e].test_accuracy == doctest::Approx(expected.epochs[e].test_accuracy).epsilon(1e-12));
  }
  CHECK(found.scores.parts[2].hits == expected.scores.parts[2].hits);
  CHECK(found.words_received.total == found.predicted_words_received.total);
  CHECK(found.words_received.max_rank == found.predicted_words_received.max_rank);
}

TEST_CASE("the serial losses and scores under every policy, with words as predicted") {
  for (const auto decoder : {nn::link_decoding::dot, nn::link_decoding::distmult, nn::link_decoding::mlp}) {
    const auto o = options_of(
        decoder, 3, decoder == nn::link_decoding::distmult ? nn::link_loss::margin : nn::link_loss::bce);
    const nn::training_result expected = serial(o);
    for (const policy& p : named_policies)
      for (const int ranks : {2, 3, 6, 9})
        test_support::with_mesh(default_mesh(p, ranks), [&](const host_mesh& m) {
          check_same(nn::link_trainer<double, host>(m, karate(), o, p).run(), expected);
        });
  }
}

TEST_CASE("links are ranked among negatives that are given or drawn, the same on every mesh") {
  io::dataset own = karate(), shared = own;
  std::vector<std::int64_t> every;
  for (const io::edge& e : own.test_links)
    for (global_index w = 0; w < own.vertices; ++w) every.push_back(w == e.source ? e.target : w);
  own.negatives[1].vertices = every;
  shared.negatives[1] = {true, {0, 9, 4, 5, 7, 8, 3, 30}};
  auto o = options_of(nn::link_decoding::dot, 2), drawn = o;
  drawn.links.ranking_negatives = 5;
  double of_drawn_pairs = 0;
  for (const auto& [data, how] : {std::pair(&own, &o), {&shared, &o}, {&shared, &drawn}}) {
    std::optional<nn::task_scores> expected;
    for (const int ranks : {1, 3, 6})
      test_support::with_mesh(default_mesh(grid_2d, ranks), [&](const host_mesh& m) {
        nn::link_trainer<double, host> t(m, *data, *how, grid_2d);
        t.run();
        const nn::task_scores found = t.scores();
        if (m.rank() != 0) return;
        if (!expected) expected = found;
        CHECK(found.parts[2].score == doctest::Approx(expected->parts[2].score).epsilon(1e-12));
        CHECK(found.parts[1].score == doctest::Approx(expected->parts[1].score).epsilon(1e-12));
        CHECK(found.parts[2].hits == expected->parts[2].hits);
        CHECK(found.parts[1].roc_auc == expected->parts[1].roc_auc);
        CHECK(found.parts[2].roc_auc == expected->parts[2].roc_auc);
      });
    if (data == &own) of_drawn_pairs = expected->parts[2].roc_auc;
    if (how == &drawn)
      CHECK(expected->parts[2].roc_auc == of_drawn_pairs);  // whichever rank knows what is no link
  }
}

/// Scores of validation and test links, and of one pair for each that is drawn, in a slow loop.
double slow_area(nn::link_trainer<double, host>& t, const io::dataset& data, std::size_t part,
                 std::uint64_t seed) {
  std::set<std::pair<global_index, global_index>> known;
  for (const auto* const edges : {&data.edges, &data.validation_links, &data.test_links})
    for (const io::edge e : *edges) known.insert({e.source, e.target});
  const auto& held_out = part == 0 ? data.validation_links : data.test_links;
  std::vector<io::edge> links(held_out.begin(), held_out.end()), pairs;
  std::ranges::stable_sort(links, {}, &io::edge::source);
  const std::uint64_t word = random_key{seed, part, 0x6e200000u}.word();
  for (std::size_t i = 0; i < links.size(); ++i)
    for (global_index k = 0; k < 64; ++k) {
      const auto w = static_cast<global_index>(base::random_bits(word, static_cast<std::int64_t>(i), k) %
                                               static_cast<std::uint64_t>(data.vertices));
      if (w == links[i].source || known.contains({links[i].source, w})) continue;
      pairs.push_back({links[i].source, w});
      break;
    }
  CHECK(pairs.size() == links.size());
  const auto s = nn::scores_of_pairs(t.decoder(), t.evaluate(), std::span<const io::edge>(links)),
             n = nn::scores_of_pairs(t.decoder(), t.evaluate(), std::span<const io::edge>(pairs));
  double won = 0;
  for (const double a : s)
    for (const double b : n) won += a == b ? 0.5 : static_cast<double>(a > b);
  return won / static_cast<double>(s.size() * n.size());
}

TEST_CASE("the area under the ROC curve is that of the pairs, on every mesh") {
  const auto o = options_of(nn::link_decoding::dot, 3);
  for (const int ranks : {1, 2, 6})
    test_support::with_mesh(default_mesh(grid_2d, ranks), [&](const host_mesh& m) {
      nn::link_trainer<double, host> t(m, karate(), o, grid_2d);
      t.run();
      const nn::task_scores found = t.scores();
      for (const std::size_t part : {0, 1})
        CHECK(found.parts[part + 1].roc_auc == slow_area(t, karate(), part, o.seed));
      CHECK(std::isnan(found.parts[0].roc_auc));
    });
}

TEST_CASE("ranks among given negatives are those of the scores") {
  io::dataset data = karate();
  const std::vector<io::edge> few{data.test_links[2], data.test_links[0]};
  data.test_links = few;
  data.negatives[1].vertices = {1, 2, 3, 30, 31, 32};
  const auto o = options_of(nn::link_decoding::distmult, 2);
  test_support::with_mesh({2, 1, 1}, [&](const host_mesh& m) {
    nn::link_trainer<double, host> t(m, data, o, row_1d);
    t.run();
    const nn::task_scores found = t.scores();
    std::vector<io::edge> pairs = few;
    for (std::size_t k = 0; k < 6; ++k) pairs.push_back({few[k / 3].source, data.negatives[1].vertices[k]});
    const auto scores = nn::scores_of_pairs(t.decoder(), t.evaluate(), std::span<const io::edge>(pairs));
    const std::span<const double> all = scores;
    const auto ranks = nn::ranks_among(all.first(2), all.subspan(2));
    CHECK(found.parts[2].score == nn::mean_reciprocal_rank(ranks));
    CHECK(found.parts[2].hits == nn::hits_at(ranks, 3));
  });
}

TEST_CASE("links are ranked far above chance") {
  for (const auto decoder : {nn::link_decoding::dot, nn::link_decoding::distmult, nn::link_decoding::mlp}) {
    const nn::training_result result = serial(options_of(decoder, 60));
    CHECK(result.epochs.back().loss < result.epochs.front().loss);
    CHECK(result.scores.parts[2].score > 0.3);  // by chance about 0.14
    CHECK(std::isnan(result.scores.parts[0].score));
  }
}

TEST_CASE("a run goes on from its state, decoder included") {
  const auto o = options_of(nn::link_decoding::mlp, 4);
  const nn::training_result whole = serial(o);
  const host_mesh m(self::world(), {1, 1, 1});
  nn::link_trainer<double, host> first(m, karate(), o, row_1d), second(m, karate(), o, row_1d);
  (void)first.epoch(1), (void)first.epoch(2);
  second.restore(first.state());
  CHECK(second.epoch(3).loss == whole.epochs[2].loss);
}

TEST_CASE("what is refused") {
  const auto made = [](const io::dataset& data, const nn::training_options& o) {
    const host_mesh m(self::world(), {1, 1, 1});
    nn::link_trainer<double, host> t(m, data, o, row_1d);
  };
  auto o = options_of(nn::link_decoding::dot, 1);
  test_support::expect_error<error>("a loss of vertices is not for links", [&] {
    const host_mesh m(self::world(), {1, 1, 1});
    nn::link_trainer<double, host>(m, karate(), o, row_1d).set_loss({});
  });
  test_support::expect_error<input_error>("no links for training", [&] { made(io::karate_club(), o); });
  o.mini_batch.batch = 4;
  test_support::expect_error<error>("not predicted in mini-batches", [&] { made(karate(), o); });
  o.mini_batch.batch = 0, o.pipeline.stages = 2;
  test_support::expect_error<error>("not predicted over stages", [&] { made(karate(), o); });
}

}  // namespace test_link_trainer
