// SPDX-License-Identifier: Apache-2.0
// A step that is rehearsed takes, in virtual time, what the step takes.
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partita/comm/emulated.hpp"
#include "partita/comm/threads.hpp"
#include "partita/compiled/host_f32.hpp"
#include "partita/graph/link_split.hpp"
#include "partita/io/karate.hpp"
#include "partita/train/make_training.hpp"
#include "support/kernel_costs.hpp"

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
