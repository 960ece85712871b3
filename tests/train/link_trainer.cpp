// SPDX-License-Identifier: Apache-2.0
// Training on links: the serial losses and scores on every policy and mesh, words as predicted, and ranks far
// above chance.
#include "partita/train/link_trainer.hpp"

#include <doctest/doctest.h>

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
