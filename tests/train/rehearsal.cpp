// SPDX-License-Identifier: Apache-2.0
// A step that is rehearsed takes, in virtual time, what the step takes.
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "partita/comm/emulated.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host_f32.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "partita/train/choose_training.hpp"
#include "support/kernel_costs.hpp"
#include "support/ranks.hpp"

namespace test_rehearsal {

using namespace partita;

nn::training_options options_of(const char* model) {
  nn::training_options o;
  o.model = model;
  o.hidden = {8};
  return o;
}

/// The clocks of the ranks after two epochs.
std::vector<double> seconds_of(const policy& p, int ranks, const nn::training_options& options,
                               const emulated::machine& machine, bool rehearses,
                               const io::dataset& data = io::karate_club()) {
  std::vector<double> seconds(static_cast<std::size_t>(ranks));
  threads::run(ranks, [&](const communicator& world) {
    const communicator c = emulated::cluster(world, machine);
    const auto q = emulated::charged(c, device_queue<host>(1));
    const mesh<host> m(c, default_mesh(p, ranks), q);
    const auto training = nn::make_training<float>(m, data, options, p);
    const double begin = c.ledger().seconds();
    {
      std::optional<emulated::rehearsal> nothing_computed;
      if (rehearses) nothing_computed.emplace(c);
      for (const int epoch : {1, 2}) training->epoch(epoch);
    }
    CHECK(c.ledger().seconds() > begin);
    seconds[static_cast<std::size_t>(c.rank())] = c.ledger().seconds();
  });
  return seconds;
}

TEST_CASE("a rehearsal takes the time of the run") {
  for (const char* const model : {"gcn", "gat"})
    for (const int ranks : {1, 3, 4, 6})
      for (const policy& p : named_policies) {
        const nn::training_options options = options_of(model);
        auto kernels = std::make_shared<memory::kernel_rates>();
        test_support::add_kernel_costs<float>(*kernels, p, ranks, options);
        const emulated::machine machine{
            .ranks_of_node = 2, .inside = {1e-6, 1e10}, .between = {1e-5, 1e9}, .kernels = kernels};
        INFO(std::string(model) << " on " << ranks << " ranks, " << std::string(p.name));
        const std::vector<double> rehearsed = seconds_of(p, ranks, options, machine, true),
                                  run = seconds_of(p, ranks, options, machine, false);
        for (std::size_t r = 0; r < run.size(); ++r) CHECK(rehearsed[r] == run[r]);
      }
}

const emulated::machine assumed{.ranks_of_node = 2,
                                .inside = {1e-6, 1e9},
                                .between = {1e-5, 1e8},
                                .kernels = std::make_shared<memory::kernel_rates>(
                                    memory::assumed_rates{.latency = 1e-6, .bandwidth = 1e9})};

/// Compares the cost of each candidate with what training so takes.
void check_costs(const communicator& world, const nn::policy_choice& choice,
                 const nn::training_options& options) {
  const auto make_mesh = nn::meshes_on<host>(world, assumed);
  double least = 1;
  for (const nn::policy_candidate& k : choice.candidates) {
    if (!k.same_as.empty()) continue;
    INFO(options.model, ", ", std::string(k.policy.name), " on ", to_string(k.mesh), ", ", k.stages,
         " stages, ", k.stage_chunks, " chunks, placement ", std::string(name_of(k.placement)));
    const mesh<host> m = make_mesh(k.stages > 0 ? mesh_shape{world.size(), 1, 1} : k.mesh);
    const nn::training_result run =
        nn::train<float>(m, io::karate_club(), nn::options_of(k, options), k.policy, k.mesh);
    const nn::max_and_total received = options.mini_batch.cut_graph
                                           ? run.predicted_words_received  // but for those of sampling
                                           : run.words_received;
    CHECK(k.cost.words.max_rank == received.max_rank);
    CHECK(k.cost.words.total == received.total);
    CHECK(k.cost.seconds > 0);
    CHECK(std::abs(k.cost.seconds / run.epochs[1].seconds - 1) < 1e-9);
    CHECK(k.cost.waiting <= k.cost.seconds);
    CHECK(std::abs(double(k.cost.buffer_bytes.max_rank) / double(run.peak_bytes.max_rank) - 1) < .1);
    least = std::min(least, k.cost.seconds);
  }
  CHECK(choice.chosen().cost.seconds <= least * (1 + 1e-9));
}

TEST_CASE("stages, chunks and what is inside a stage cost what training so takes") {
  const io::dataset club = io::karate_club();
  for (const auto& [ranks, model, history] : {std::tuple(2, "resgcn", nn::chunk_history::halo),
                                              {4, "gcnii", nn::chunk_history::window},
                                              {8, "gcn", nn::chunk_history::exact}}) {
    nn::training_options options = options_of(model);
    options.layers = 4, options.epochs = 2;
    options.pipeline.history = history;
    test_support::on_threads(ranks, [&, ranks = ranks](const communicator& world) {
      nn::stage_search from{.stages = ranks == 2 ? std::vector{2} : std::vector{2, 4},
                            .chunks = {0, 3},
                            .inside = {.policies = {row_1d, grid_2d}}};
      if (ranks == 8) from.chunks = {3};
      const nn::policy_choice choice =
          nn::choose_stages<float>(ranks, nn::meshes_on<host>(world, assumed), club, options, from);
      CHECK(choice.candidates.size() == (ranks == 2 ? 4 : ranks == 4 ? 8 : 4));
      check_costs(world, choice, options);
    });
  }
}

TEST_CASE("chunks are those that are given for their number and the mesh of a stage") {
  const io::dataset club = io::karate_club();
  nn::training_options options = options_of("gcn");
  options.pipeline.cut = nn::chunk_cut::partitioned;
  test_support::on_threads(2, [&](const communicator& world) {
    const auto chosen = [&](int divisor) {
      nn::stage_search from{.stages = {2}, .chunks = {2}, .inside = {.policies = {row_1d}}};
      from.inside.mesh = mesh_shape{1, 1, 1};
      from.chunk_of = [&](const nn::pipeline_options& how, mesh_shape inside) {
        CHECK((how.chunk_count() == 2 && inside.size() == 1));
        std::vector<int> of(static_cast<std::size_t>(club.vertices));
        for (std::size_t v = 0; v < of.size(); ++v) of[v] = static_cast<int>(v) % divisor == 0;
        return of;
      };
      return nn::choose_stages<float>(2, nn::meshes_on<host>(world, assumed), club, options, from)
          .chosen()
          .cost;
    };
    CHECK(chosen(2).words.total == chosen(17).words.total);
    CHECK(chosen(2).seconds < chosen(17).seconds);  // chunks of equally many
  });
}

TEST_CASE("placements cost what training so takes") {
  const io::dataset club = io::karate_club();
  for (const auto& [ranks, model, parts] : {std::tuple(2, "gcn", 2), {4, "gcn", 1}, {3, "gatv2", 1}}) {
    nn::training_options options = options_of(model);
    options.epochs = 2;
    options.mini_batch = {.batch = 3, .fanouts = {2, 3}, .micro_batches = parts, .cut_graph = ranks == 3};
    test_support::on_threads(ranks, [&, ranks = ranks](const communicator& world) {
      const auto chosen = [&](const nn::training_options& o) {
        return nn::choose_placement<float>(ranks, nn::meshes_on<host>(world, assumed), club, o,
                                           {.policies = {row_1d}});
      };
      const nn::policy_choice all = chosen(options);
      CHECK(all.candidates.size() == (ranks == 3 ? 3 : 4));
      check_costs(world, all, options);
      nn::training_options given = options;
      given.mini_batch.placement = sampling::placement::even;
      CHECK(chosen(given).candidates.size() == 1);
      CHECK(chosen(given).chosen().cost.words.total == all.candidates[1].cost.words.total);
      CHECK(all.candidates[0].cost.words.total != all.candidates[1].cost.words.total);
    });
  }
}

TEST_CASE("what cannot be chosen from") {
  const io::dataset club = io::karate_club();
  nn::training_options options = options_of("gcn");
  test_support::expect_error<mesh_error>(4, "4 ranks are not 3 stages", [&](const communicator& world) {
    (void)nn::choose_stages<float>(4, nn::meshes_on<host>(world, assumed), club, options, {.stages = {3}});
  });
  test_support::expect_error<budget_error>(2, "no policy fits", [&](const communicator& world) {
    (void)nn::choose_stages<float>(2, nn::meshes_on<host>(world, assumed), club, options,
                                   {.stages = {2}, .inside = {.most_bytes = 100}});
  });
  options.mini_batch.batch = 3;
  test_support::expect_error<error>(2, "kernels are measured", [&](const communicator& world) {
    const auto plain = [&](mesh_shape shape) { return mesh<host>(world, shape); };
    (void)nn::choose_placement<float>(2, plain, club, options, {});
  });
  options.links.width = 4;
  const io::dataset pairs = graph::split_links(club, {});
  test_support::expect_error<error>(2, "links", [&](const communicator& world) {
    (void)nn::choose_placement<float>(2, nn::meshes_on<host>(world, assumed), pairs, options, {});
  });
}

TEST_CASE("a rehearsal of links takes the time of the run, with pairs, scores and losses") {
  const io::dataset data =
      graph::split_links(io::karate_club(), {.validation = 0.1, .test = 0.1, .columns = 6, .seed = 2});
  const emulated::machine machine{
      .ranks_of_node = 2,
      .inside = {1e-6, 1e10},
      .between = {1e-5, 1e9},
      .kernels = std::make_shared<memory::kernel_rates>(memory::assumed_rates{1e-6, 1e9})};
  for (const auto& [decoder, drawn] :
       {std::pair(nn::link_decoding::distmult, 0), {nn::link_decoding::mlp, 5}})
    for (const policy& p : named_policies) {
      nn::training_options options = options_of("gcn");
      options.links = {.width = 6, .decoder = decoder, .ranking_negatives = drawn};
      INFO(std::string(p.name) << ", " << options.links.ranking_negatives << " drawn");
      CHECK(seconds_of(p, 4, options, machine, true, data) ==
            seconds_of(p, 4, options, machine, false, data));
    }
}

}  // namespace test_rehearsal
