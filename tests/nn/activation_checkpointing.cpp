// SPDX-License-Identifier: Apache-2.0
// Outputs that are computed again: the bits of those that are stored, in less memory, for more words.
#include "partita/nn/activation_checkpointing.hpp"

#include <doctest/doctest.h>

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/memory/host_far.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/datasets.hpp"
#include "support/far_store.hpp"
#include "support/meshes.hpp"
#include "support/summing.hpp"

namespace test_recomputation {

using namespace test_support;

nn::training_options options_of(const std::string& model, int layers, nn::activation_checkpointing how) {
  return {.model = model,
          .hidden = {8},
          .layers = layers,
          .heads = 2,
          .hops = 3,
          .recompute = how,
          .epochs = 3,
          .seed = 42};
}

void check_same_epochs(const nn::training_result& again, const nn::training_result& stored,
                       const std::string& where) {
  REQUIRE(again.epochs.size() == stored.epochs.size());
  for (std::size_t e = 0; e < again.epochs.size(); ++e) {
    CHECK_MESSAGE(again.epochs[e].loss == stored.epochs[e].loss, where);
    CHECK_MESSAGE(again.epochs[e].test_accuracy == stored.epochs[e].test_accuracy, where);
  }
  CHECK_MESSAGE(again.words_received.max_rank == again.predicted_words_received.max_rank, where);
  CHECK_MESSAGE(again.words_received.total == again.predicted_words_received.total, where);
}

void check_same_bits(const io::dataset& d, nn::training_options o, const mesh<host>& m, const policy& p) {
  o.recompute = nn::activation_checkpointing::never;
  const nn::training_result stored = nn::train_model<double>(m, d, o, p);
  o.recompute = nn::activation_checkpointing::always;
  const nn::training_result again = nn::train_model<double>(m, d, o, p);
  check_same_epochs(again, stored,
                    o.model + " of " + std::to_string(o.layers) + " layers, " + std::string(p.name) + " on " +
                        to_string(m.shape()));
}

global_index received_in(const nn::training_result& r, const std::string& phase) {
  global_index words = 0;
  for (const comm::ledger_entry& e : r.ledger)
    if (e.phase == phase) words += e.received.words;
  return words;
}

const io::dataset d = directed_graph();

TEST_CASE("of n outputs every k-th is stored, k = ceil(sqrt(n)), and all behind the last of these") {
  const auto stored = [](std::size_t n) {
    const nn::stored_outputs of(n);
    std::string found;
    for (std::size_t l = 0; l < n; ++l) found += of.has(l) ? 'x' : '.';
    return found;
  };
  CHECK(stored(1) == "x");
  CHECK(stored(2) == "xx");
  CHECK(stored(3) == ".xx");
  CHECK(stored(4) == ".xxx");
  CHECK(stored(5) == "..xxx");
  CHECK(stored(7) == "..x..xx");
  CHECK(stored(10) == "...x...xxx");
  CHECK(nn::stored_outputs(7).begin(5) == 3);
}

TEST_CASE("every model has the bits of stored outputs, and receives the words that are predicted") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> by_rows(world, {ranks, 1, 1}), by_columns(world, {1, ranks, 1});
      for (const auto& [m, p] : {std::pair(by_rows, row_1d), std::pair(by_columns, feature_column)}) {
        for (const char* model : {"gcn", "sage", "gin", "gat"})
          for (const int layers : {2, 3, 5}) check_same_bits(d, options_of(model, layers, {}), m, p);
        check_same_bits(d, options_of("sgc", 0, {}), m, p);
        check_same_bits(d, options_of("appnp", 5, {}), m, p);
        check_same_bits(d, options_of("resgcn", 5, {}), m, p);
        nn::training_options largest = options_of("sage", 5, {});
        largest.aggregation = nn::aggregation::max;
        if (p.name == row_1d.name) check_same_bits(d, largest, m, p);
        for (const char* model : {"gcn", "gat"}) {
          nn::training_options decoupled = options_of(model, 5, {});
          decoupled.coupling = nn::coupling::decoupled;
          check_same_bits(d, decoupled, m, p);
        }
        nn::training_options learned = options_of("gcn", 5, {});
        learned.embedding = 6;
        check_same_bits(d, learned, m, p);
      }
    });
}

TEST_CASE("gat has the bits of stored outputs on every mesh, and on reproducible ones") {
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape shape) {
    on_threads(4, [&](const communicator& world) {
      check_same_bits(d, options_of("gat", 3, {}), mesh<host>(world, shape), policy);
      check_same_bits(d, options_of("gat", 3, {}), mesh<host>(world, shape, summing(summation::reproducible)),
                      policy);
    });
  });
}

TEST_CASE(
    "five sage layers receive more words in backward where outputs are computed again, in smaller buffers") {
  on_threads(3, [&](const communicator& world) {
    const auto run = [&](nn::activation_checkpointing how) {
      return nn::train_model<double>(mesh<host>(world, {3, 1, 1}), d, options_of("sage", 5, how), row_1d);
    };
    const nn::training_result stored = run(nn::activation_checkpointing::never),
                              again = run(nn::activation_checkpointing::always);
    const global_index more = again.words_received.total - stored.words_received.total;
    CHECK(more == received_in(again, "backward") - received_in(stored, "backward"));
    CHECK(received_in(again, "forward") == received_in(stored, "forward"));
    CHECK(more > 0);
    CHECK(again.peak_bytes.total + 3 * 61 * 8 * global_index{sizeof(double)} <= stored.peak_bytes.total);
  });
}

TEST_CASE("with far memory, too: fewer bytes live there, more pass") {
  const auto run = [&](nn::activation_checkpointing how) {
    const mesh<host> m(self::world(), {1, 1, 1});
    const auto store = new_far_store();
    use_far(m.queue(), {.store = store, .window = 8192});
    return nn::train_model<double>(m, d, options_of("gcn", 5, how), row_1d);
  };
  const nn::training_result stored = run(nn::activation_checkpointing::never),
                            again = run(nn::activation_checkpointing::always);
  check_same_epochs(again, stored, "far");
  CHECK(again.far->peak_bytes.total < stored.far->peak_bytes.total);
  CHECK(again.far->read.total > stored.far->read.total);
  CHECK(again.far->written.total > stored.far->written.total);
}

TEST_CASE("gradients through outputs that are computed again agree with finite differences") {
  const mesh<host> m(self::world(), {1, 1, 1});
  const nn::training_options o = options_of("gat", 4, nn::activation_checkpointing::always);
  nn::trainer<double, host> t(m, d, o, nn::make_model<double>(m, d, o, row_1d));
  CHECK(t.gradient_error(1e-6) < 1e-6);
}

TEST_CASE("gcnii says that its outputs cannot be recomputed") {
  const mesh<host> m(self::world(), {1, 1, 1});
  const nn::training_options o = options_of("gcnii", 3, nn::activation_checkpointing::always);
  expect_error<error>("activation checkpointing cannot recompute the outputs",
                      [&] { nn::train_model<double>(m, d, o, row_1d); });
}

}  // namespace test_recomputation
