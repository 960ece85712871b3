// SPDX-License-Identifier: Apache-2.0
// Mini-batches of a reproducible mesh: the same bits for all ranks, placements and threads.

#include "laws/training_laws.hpp"
#include "support/mini_batches.hpp"

namespace test_reproducible_batches {

using namespace test_support;

nn::training_options options_for(const char* model) {
  nn::training_options o = batch_options(model, {4, 3});
  o.mini_batch.batch = 13;
  return o;
}

/// Losses, scores and what was learned.
template <class T>
run_bits train(const mesh<host>& m, const io::dataset& d, const nn::training_options& o) {
  nn::mini_batch_trainer<T, host> t(m, d, o, row_1d);
  const nn::training_result r = t.run();
  if (!o.mini_batch.cut_graph) check_words(r);
  run_bits result;
  for (const nn::epoch_report& e : r.epochs)
    result.numbers.insert(result.numbers.end(),
                          {e.loss, e.train_accuracy, e.validation_accuracy, e.test_accuracy});
  if (t.embedding() != nullptr) result.add<T>(collect(*t.embedding()));
  result.add<T>(t.parameters().values().values());
  return result;
}

template <class T>
run_bits on_one_rank(const io::dataset& d, const nn::training_options& o, summation sums) {
  return train<T>(reproducible_mesh(self::world(), {1, 1, 1}, 1, sums), d, o);
}

template <class T>
void expect_same_bits(const io::dataset& d, nn::training_options o, std::initializer_list<int> rank_counts) {
  const run_bits expected = on_one_rank<T>(d, o, summation::reproducible);
  const run_bits fast = on_one_rank<T>(d, o, summation::fast);
  for (std::size_t i = 0; i < expected.numbers.size(); i += 4)
    CHECK(std::abs(expected.numbers[i] - fast.numbers[i]) < 1000 * std::numeric_limits<T>::epsilon());
  for (const placement how :
       {placement::even, placement::owner, placement::column_gather, placement::automatic})
    for (const int ranks : rank_counts) {
      if (!sees(ranks)) continue;
      INFO("o.model ", o.model, ", how ", static_cast<int>(how), ", ranks ", ranks);
      o.mini_batch.placement = how;
      o.mini_batch.cut_graph = how == placement::even && ranks == 3;
      o.mini_batch.sampling_threads = 1 + ranks % 2;
      on_threads(ranks, [&](const communicator& world) {
        const mesh_shape shape{ranks % 2 == 0 ? ranks / 2 : ranks, ranks % 2 == 0 ? 2 : 1, 1};
        CHECK(train<T>(reproducible_mesh(world, how == placement::owner ? mesh_shape{ranks, 1, 1} : shape,
                                         1 + ranks % 3),
                       d, o) == expected);
      });
    }
}

const io::dataset d = directed_graph(61);

TEST_CASE(
    "gcn, sage, gin and rgcn: the same bits for every number of ranks, placement and number of threads") {
  for (const char* model : {"gcn", "sage", "gin"}) {
    expect_same_bits<float>(d, options_for(model), {2, 3, 4, 6});
    expect_same_bits<double>(d, options_for(model), {2, 3, 4, 6});
  }
  expect_same_bits<double>(with_edge_data(d), options_for("rgcn"), {2, 3});
}

TEST_CASE("messages, scores and softmaxes of sampled edges: the same bits") {
  for (const char* model : {"gine", "gatv2", "transformer", "meshgraphnet"}) {
    nn::training_options o = options_for(model);
    o.layers = 2;
    if (o.model == "meshgraphnet") o.mini_batch.fanouts = {4};
    expect_same_bits<double>(with_edge_data(d), o, {3});
  }
  expect_same_bits<float>(with_edge_data(d), options_for("gatv2"), {2});
}

TEST_CASE(
    "the sampler of layers, micro-batches, sampled scores, several labels and draws with replacement: the "
    "same bits") {
  nn::training_options o = options_for("gcn");
  o.mini_batch.sampler = nn::batch_sampler::layers;
  o.mini_batch.fanouts = {20, 15};
  expect_same_bits<float>(d, o, {3, 4});
  o = options_for("sage");
  o.mini_batch.micro_batches = 3;
  expect_same_bits<float>(d, o, {2, 6});
  o.mini_batch.sampled_scores = true;
  o.mini_batch.replace = true;
  expect_same_bits<double>(d, o, {3, 4});
  o.mini_batch.replace = false;
  o.hidden = {9, 4};
  o.mini_batch.fanouts = {2, 3, 4};
  expect_same_bits<float>(with_several_labels(d), o, {4});
}

TEST_CASE("an embedding: the same bits") {
  nn::training_options o = options_for("gcn");
  o.embedding = 5;
  expect_same_bits<float>(d, o, {2, 3});
  expect_same_bits<double>(d, o, {4, 6});
  o = options_for("sage");
  o.embedding = 3;
  o.mini_batch.micro_batches = 2;
  expect_same_bits<float>(d, o, {3});
}

TEST_CASE("fast sums of batches depend on the ranks") {
  nn::training_options o = options_for("gcn");
  const run_bits one = on_one_rank<float>(d, o, summation::fast);
  on_threads(3, [&](const communicator& world) {
    CHECK(!(train<float>(reproducible_mesh(world, {3, 1, 1}, 1, summation::fast), d, o) == one));
  });
}

TEST_CASE("batches that cannot be reproducible say so") {
  const mesh<host> m = reproducible_mesh(self::world(), {1, 1, 1}, 1);
  const auto refused = [&](const char* what, const nn::training_options& o) {
    expect_error<error>(what, [&] { nn::train<float>(m, d, o, row_1d); });
  };
  refused("attention on sampled neighbours is not available on a reproducible mesh", options_for("gat"));
  expect_error<error>("attention on sampled neighbours",
                      [&] { nn::train<float>(m, with_edge_data(d), options_for("rgat"), row_1d); });
  nn::training_options o = options_for("gcn");
  o.mini_batch.placement = placement::column;
  refused("placement column", o);
  o = options_for("gcn");
  o.mini_batch.sampler = nn::batch_sampler::walks;
  o.mini_batch.fanouts = {2};
  refused("subgraphs of walks", o);
}

}  // namespace test_reproducible_batches
