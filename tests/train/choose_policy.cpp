// SPDX-License-Identifier: Apache-2.0
// The policy that is chosen, against the costs of all.
#include "partita/train/choose_policy.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "partita/compiled/host.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "support/datasets.hpp"
#include "support/kernel_costs.hpp"
#include "support/ranks.hpp"

namespace test_choose_policy {

using namespace test_support;

nn::policy_choice chosen(const communicator& world, const io::dataset& data, const nn::policy_search& from,
                         const nn::training_options& options = {}) {
  return nn::choose_policy<double>(world, device_queue<host>(), data, options, from);
}

double product(const nn::policy_cost& c) {
  return static_cast<double>(c.words.max_rank + 1) * static_cast<double>(c.bytes());
}

TEST_CASE("the first policy with the least product of words and bytes is chosen") {
  const io::dataset club = io::karate_club();
  for (const bool every_mesh : {false, true})
    for (const int ranks : {1, 4, 6})
      on_threads(ranks, [&](const communicator& world) {
        const nn::policy_choice choice = chosen(world, club, {.every_mesh = every_mesh});
        CHECK(choice.symmetric == true);
        const nn::policy_candidate* best = nullptr;
        std::size_t count = 0;
        for (const nn::policy_candidate& k : choice.candidates) {
          CHECK(k.same_as == partition::same_policy(k.policy, k.mesh));
          CHECK((every_mesh || k.mesh == default_mesh(k.policy, ranks)));
          count += k.chosen ? 1 : 0;
          if (!k.same_as.empty()) continue;
          const nn::policy_cost alone =
              nn::predict_cost<double>(mesh<host>(world, k.mesh), club, {}, k.policy);
          CHECK(k.cost.words.max_rank == alone.words.max_rank);
          CHECK(k.cost.bytes() == alone.bytes());
          if (best == nullptr || product(k.cost) < product(best->cost)) best = &k;
        }
        CHECK(count == 1);
        CHECK(best->chosen);
        CHECK((best->policy.name == choice.policy.name && best->mesh == choice.mesh));
      });
}

TEST_CASE("buffers of the policy that is chosen fit into what is allowed") {
  const io::dataset club = io::karate_club();
  on_threads(4, [&](const communicator& world) {
    const nn::policy_choice free = chosen(world, club, {});
    const auto bytes = [](const nn::policy_candidate& k) { return k.cost.buffer_bytes.max_rank; };
    const nn::policy_candidate* smallest = nullptr;
    for (const nn::policy_candidate& k : free.candidates)
      if (k.same_as.empty() && (smallest == nullptr || bytes(k) < bytes(*smallest))) smallest = &k;
    const auto least = static_cast<std::size_t>(bytes(*smallest));
    CHECK(chosen(world, club, {.most_bytes = least}).policy.name == smallest->policy.name);
    CHECK_THROWS_AS(chosen(world, club, {.most_bytes = least - 1}), budget_error);
  });
}

TEST_CASE("a choice of one policy, and of none") {
  on_threads(4, [&](const communicator& world) {
    const nn::policy_choice one =
        chosen(world, directed_graph(), {.policies = {grid_2d}, .every_mesh = true, .threads = 2});
    CHECK(one.policy.name == grid_2d.name);
    CHECK(one.candidates.size() == 3);
    std::vector<std::pair<global_index, global_index>> told;
    (void)chosen(world, directed_graph(),
                 {.policies = {grid_2d},
                  .every_mesh = true,
                  .observe = [&](global_index done, global_index all) { told.emplace_back(done, all); }});
    CHECK(told == std::vector<std::pair<global_index, global_index>>{{1, 3}, {2, 3}, {3, 3}});
    for (const nn::policy_candidate& k : one.candidates) CHECK(k.same_as.empty());
    CHECK_THROWS_AS(chosen(world, directed_graph(), {.policies = {}}), mesh_error);
  });
}

/// A network, and the kernels of these models.
emulated::machine measured_machine(std::initializer_list<const char*> models) {
  auto kernels = std::make_shared<memory::kernel_rates>();
  for (const char* model : models)
    for (const policy& p : named_policies)
      add_kernel_costs<double>(*kernels, p, 4, {.model = model, .hidden = {6}});
  return {.ranks_of_node = 2, .inside = {1e-6, 1e9}, .between = {1e-5, 1e8}, .kernels = kernels};
}

TEST_CASE("the seconds of a step on a machine are those of training there, and the least are chosen") {
  const io::dataset club = io::karate_club();
  const auto models = {"gcn", "sage", "appnp"};
  const emulated::machine machine = measured_machine(models);
  for (const char* model : models)
    for (const int ranks : {1, 4, 6}) {
      const nn::training_options options{.model = model, .hidden = {6}, .epochs = 3};
      on_threads(ranks, [&](const communicator& world) {
        const nn::policy_choice choice =
            nn::choose_policy<double>(world, machine, device_queue<host>(), club, options,
                                      {.every_mesh = true,
                                       .exchanges = {row_exchange::full, row_exchange::sparsity_aware},
                                       .stationaries = {stationary::c, stationary::a}});
        double least = 1;
        for (const nn::policy_candidate& k : choice.candidates) {
          if (!k.same_as.empty()) continue;
          const communicator there =
              emulated::cluster(communicator(world.transport(), world.axis()), machine);
          const mesh<host> m(there, k.mesh, emulated::charged(there, device_queue<host>()));
          const nn::training_result run =
              nn::train_model<double>(m, club, nn::options_of(k, options), k.policy);
          INFO(std::string(model), ", ", std::string(k.policy.name), " on ", to_string(k.mesh), ", ",
               int(k.exchange), int(k.stationary));
          CHECK(std::abs(k.cost.seconds / run.epochs[1].seconds - 1) < 1e-9);
          CHECK(k.cost.words.max_rank == run.words_received.max_rank);
          CHECK(std::abs(double(k.cost.buffer_bytes.max_rank) / double(run.peak_bytes.max_rank) - 1) < .1);
          CHECK(k.cost.waiting <= k.cost.seconds);
          least = std::min(least, k.cost.seconds);
        }
        CHECK(choice.chosen().cost.seconds == least);
        CHECK(choice.chosen().policy.name == choice.policy.name);
      });
    }
}

TEST_CASE("chunks of the exchange of needed rows are candidates where such rows travel, and train so") {
  const io::dataset club = io::karate_club();
  const emulated::machine machine{.between = {1e-6, 1e8},
                                  .kernels = std::make_shared<memory::kernel_rates>(
                                      memory::assumed_rates{.latency = 1e-6, .bandwidth = 1e9})};
  const nn::training_options options{.hidden = {6}, .epochs = 3};
  on_threads(4, [&](const communicator& world) {
    const auto chosen_from = [&](const nn::training_options& o, std::vector<row_exchange> exchanges) {
      return nn::choose_policy<double>(
          world, machine, device_queue<host>(), club, o,
          {.policies = {row_1d, feature_column}, .exchanges = std::move(exchanges), .chunks = {0, 1, 3}});
    };
    const auto chunks_of = [](const nn::policy_choice& choice) {
      std::vector<int> found;
      for (const nn::policy_candidate& k : choice.candidates) found.push_back(k.chunks);
      return found;
    };
    const nn::policy_choice choice = chosen_from(options, {row_exchange::full, row_exchange::sparsity_aware});
    // By rule these rows come at once, so that 1 is no candidate of its own.
    CHECK(chunks_of(choice) == std::vector{0, 0, 3, 0});
    for (const nn::policy_candidate& k : choice.candidates) {
      const nn::training_options o = nn::options_of(k, options);
      CHECK(o.exchange_pieces == k.chunks);
      const communicator there = emulated::cluster(communicator(world.transport(), world.axis()), machine);
      const mesh<host> m(there, k.mesh, emulated::charged(there, device_queue<host>()));
      const nn::training_result run = nn::train_model<double>(m, club, o, k.policy);
      CHECK(std::abs(k.cost.seconds / run.epochs[1].seconds - 1) < 1e-9);
      CHECK(k.cost.words.max_rank == run.words_received.max_rank);
    }
    CHECK(choice.candidates[1].cost.words.total == choice.candidates[2].cost.words.total);
    CHECK(choice.candidates[1].cost.seconds != choice.candidates[2].cost.seconds);

    nn::training_options given = options;
    given.exchange_pieces = 2;
    CHECK(chunks_of(chosen_from(given, {})) == std::vector{2, 2});
    given.exchange_pieces = 0, given.exchange = row_exchange::sparsity_aware;
    CHECK(chunks_of(chosen_from(given, {})) == std::vector{0, 3, 0});
    given.ranks_of_node = 2;
    CHECK(chunks_of(chosen_from(given, {})) == std::vector{0, 0});
  });
}

/// Compares the cost of each policy on so many ranks, by a rehearsal, with the run.
template <class T>
void check_rehearsed(int ranks, const io::dataset& data, const nn::training_options& options) {
  const emulated::machine machine{.between = {1e-6, 1e8},
                                  .kernels = std::make_shared<memory::kernel_rates>(
                                      memory::assumed_rates{.latency = 1e-6, .bandwidth = 1e9})};
  on_threads(ranks, [&](const communicator& world) {
    const nn::policy_choice choice =
        nn::choose_policy<T>(world, machine, device_queue<host>(), data, options, {});
    for (const nn::policy_candidate& k : choice.candidates) {
      if (!k.same_as.empty()) continue;
      const communicator there = emulated::cluster(communicator(world.transport(), world.axis()), machine);
      const mesh<host> m(there, k.mesh, emulated::charged(there, device_queue<host>()));
      const nn::training_result run = nn::train<T>(m, data, options, k.policy);
      INFO(options.model, ", ", std::string(k.policy.name), " on ", to_string(k.mesh));
      CHECK(k.cost.seconds > 0);
      CHECK(std::abs(k.cost.seconds / run.epochs[1].seconds - 1) < 1e-9);
      CHECK(k.cost.words.max_rank == run.words_received.max_rank);
      CHECK(k.cost.words.total == run.words_received.total);
      CHECK(std::abs(double(k.cost.buffer_bytes.max_rank) / double(run.peak_bytes.max_rank) - 1) < .1);
    }
  });
}

TEST_CASE("rehearsals of sgc and maxima charge sparse features that are written out, as the run does") {
  io::dataset data = io::karate_club();
  data.features = 9;
  data.vertex_features = sparse_features(data.vertices, data.features);
  nn::training_options options{.model = "sgc", .hidden = {6}, .epochs = 3};
  check_rehearsed<double>(4, data, options);
  options.model = "sage", options.aggregation = nn::aggregation::max;
  check_rehearsed<double>(4, data, options);
}

TEST_CASE("rehearsals charge products with operands of bfloat16, as the run does") {
  nn::training_options options{.hidden = {6}, .epochs = 3};
  options.operands = nn::operand_precision::bfloat16;
  for (const int ranks : {1, 4}) check_rehearsed<float>(ranks, io::karate_club(), options);
}

TEST_CASE("rehearsals of links draw the pairs of the run, and charge its scores and losses") {
  const io::dataset data =
      graph::split_links(io::karate_club(), {.validation = 0.1, .test = 0.1, .columns = 6, .seed = 2});
  nn::training_options options{.hidden = {6}, .epochs = 2};  // words are those of the second epoch's pairs
  for (const auto decoder : {nn::link_decoding::dot, nn::link_decoding::mlp}) {
    options.links = {.width = 6, .decoder = decoder, .negatives = 2};
    for (const int ranks : {1, 4}) check_rehearsed<double>(ranks, data, options);
  }
}

/// A candidate of this cost.
nn::policy_candidate costing(double seconds, global_index bytes, global_index words, int chunks = 0) {
  nn::policy_candidate k{row_1d, {4, 1, 1}};
  k.cost = {.words = {words, words}, .buffer_bytes = {bytes, bytes}, .seconds = seconds};
  k.chunks = chunks;
  return k;
}

TEST_CASE("of candidates that take as long but for rounding, the fewest bytes and then words are first") {
  std::vector<nn::policy_candidate> all{costing(2, 1, 1, 1),          costing(1 + 9e-10, 20, 7, 2),
                                        costing(1 + 2e-9, 10, 1, 3),  costing(1, 30, 7, 4),
                                        costing(1 + 5e-10, 20, 5, 5), costing(1 + 4e-10, 20, 5, 6)};
  const auto order = [&](std::optional<std::size_t> most) {
    std::vector<int> chunks;
    std::vector<nn::policy_candidate> sorted = all;
    nn::sort_by_cost(sorted, most, std::identity());
    for (const nn::policy_candidate& k : sorted) chunks.push_back(k.chunks);
    return chunks;
  };
  CHECK(order({}) == std::vector{6, 5, 2, 4, 3, 1});
  CHECK(order(15) == std::vector{3, 1, 6, 5, 2, 4});
  CHECK(&nn::detail::choose(all, {}) == &all[5]);
  CHECK(&nn::detail::choose(all, 15) == &all[2]);
  CHECK_THROWS_WITH_AS(nn::detail::choose(all, 0),
                       "no policy fits into buffers of 0 bytes on a rank: row_1d on mesh 4x1x1 needs least, "
                       "1 bytes to be set up; its epochs may need more",
                       budget_error);
}

TEST_CASE("candidates that differ in nothing but chunks are listed once") {
  std::vector<nn::policy_candidate> all{costing(1, 20, 7), costing(1 + 5e-10, 20, 7, 1), costing(1, 20, 8, 2),
                                        costing(1 + 3e-9, 20, 7, 3)};
  all.push_back(all[0]);
  all.back().same_as = "grid_2d";
  nn::detail::drop_repeated(all);
  REQUIRE(all.size() == 4);
  CHECK((all[0].chunks == 0 && all[1].chunks == 2 && all[2].chunks == 3));
}

}  // namespace test_choose_policy
