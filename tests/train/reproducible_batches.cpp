// SPDX-License-Identifier: Apache-2.0
// Training on mini-batches of a reproducible mesh: the same bits for every number of ranks, placement and
// thread.
#include <cmath>
#include <limits>

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/mini_batches.hpp"
#include "support/runs.hpp"

namespace test_reproducible_batches {

using namespace test_support;

namespace {

nn::training_options options_for(const char* model) {
  nn::training_options o = batch_options(model, {4, 3});
  o.mini_batch.batch = 13;
  return o;
}

/// Losses, scores and words, and the parameters after the run, as bits.
struct trained {
  std::vector<double> numbers;
  std::vector<std::byte> bits;
  bool operator==(const trained&) const = default;
};

template <class T>
trained train(const mesh<host>& m, const io::dataset& d, const nn::training_options& o) {
  nn::mini_batch_trainer<T, host> t(m, d, o, row_1d);
  const nn::training_result r = t.run();
  if (!o.mini_batch.cut_graph) {
    check_words(r);
  }
  trained result;
  for (const nn::epoch_report& e : r.epochs)
    result.numbers.insert(result.numbers.end(),
                          {e.loss, e.train_accuracy, e.validation_accuracy, e.test_accuracy});
  std::vector<T> values;
  if (t.embedding() != nullptr) values = collect(*t.embedding());
  const auto parameters = t.parameters().values().values();
  values.insert(values.end(), parameters.begin(), parameters.end());
  const auto bytes = std::as_bytes(std::span<const T>(values));
  result.bits.assign(bytes.begin(), bytes.end());
  return result;
}

mesh<host> mesh_of(const communicator& world, mesh_shape shape, int threads,
                   summation sums = summation::reproducible) {
  return {world, shape, device_queue<host>(threads), sums};
}

template <class T>
trained on_one_rank(const io::dataset& d, const nn::training_options& o, summation sums) {
  trained result;
  on_threads(1, [&](const communicator& world) {
    result = train<T>(mesh_of(world, {1, 1, 1}, 1, sums), d, o);
  });
  return result;
}

template <class T>
void expect_same_bits(const io::dataset& d, nn::training_options o, std::initializer_list<int> rank_counts) {
  const trained expected = on_one_rank<T>(d, o, summation::reproducible);
  const trained fast = on_one_rank<T>(d, o, summation::fast);
  for (std::size_t i = 0; i < expected.numbers.size(); i += 4)
    CHECK(std::abs(expected.numbers[i] - fast.numbers[i]) < 1000 * std::numeric_limits<T>::epsilon());
  for (const placement how :
       {placement::any, placement::home, placement::column_gather, placement::automatic})
    for (const int ranks : rank_counts) {
      if (!sees(ranks)) continue;
      INFO("o.model ", o.model, ", how ", static_cast<int>(how), ", ranks ", ranks);
      o.mini_batch.placement = how;
      o.mini_batch.cut_graph = how == placement::any && ranks == 3;
      o.mini_batch.sampling_threads = 1 + ranks % 2;
      on_threads(ranks, [&](const communicator& world) {
        const mesh_shape shape{ranks % 2 == 0 ? ranks / 2 : ranks, ranks % 2 == 0 ? 2 : 1, 1};
        CHECK(
            train<T>(mesh_of(world, how == placement::home ? mesh_shape{ranks, 1, 1} : shape, 1 + ranks % 3),
                     d, o) == expected);
      });
    }
}

const io::dataset d = directed_graph(61);

}  // namespace

TEST_CASE("gcn, sage and gin: the same bits for every number of ranks, placement and number of threads") {
  for (const char* model : {"gcn", "sage", "gin"}) {
    expect_same_bits<float>(d, options_for(model), {2, 3, 4, 6});
    expect_same_bits<double>(d, options_for(model), {2, 3, 4, 6});
  }
}

TEST_CASE(
    "the sampler of layers, micro-batches, sampled scores, several labels and draws with replacement: the "
    "same bits") {
  io::dataset d = directed_graph(61);
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
  d.multi_label = true;
  for (global_index v = 0; v < d.vertices; ++v)
    for (global_index c = 0; c < d.classes; ++c)
      d.label_matrix.push_back(static_cast<std::uint8_t>(random_bits(9, v, c) % 2));
  o.mini_batch.replace = false;
  o.hidden = {9, 4};
  o.mini_batch.fanouts = {2, 3, 4};
  expect_same_bits<float>(d, o, {4});
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
  const trained one = on_one_rank<float>(d, o, summation::fast);
  on_threads(3, [&](const communicator& world) {
    CHECK(!(train<float>(mesh_of(world, {3, 1, 1}, 1, summation::fast), d, o) == one));
  });
}

TEST_CASE("batches that cannot be reproducible say so") {
  const mesh<host> m = mesh_of(self::world(), {1, 1, 1}, 1);
  const auto refused = [&](const char* what, const nn::training_options& o) {
    expect_error<error>(what, [&] { nn::train_on_mini_batches<float>(m, d, o, row_1d); });
  };
  refused("attention on sampled neighbours is not available on a reproducible mesh", options_for("gat"));
  nn::training_options o = options_for("gcn");
  o.mini_batch.placement = placement::column;
  refused("placement column", o);
  o = options_for("gcn");
  o.mini_batch.sampler = nn::batch_sampler::walks;
  o.mini_batch.fanouts = {2};
  refused("subgraphs of walks", o);
}

}  // namespace test_reproducible_batches
