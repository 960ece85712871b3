// SPDX-License-Identifier: Apache-2.0
// What an iteration computes and moves: weights of micro-batches, sums of gradients, rows of the input.
#include "partita/train/mini_batch_trainer.hpp"

#include <set>

#include "partita/compiled/host.hpp"
#include "support/datasets.hpp"
#include "support/far_store.hpp"
#include "support/matrices.hpp"
#include "support/mini_batches.hpp"

namespace test_mini_batch_trainer {

using namespace test_support;

nn::training_options options_for(placement how) {
  return {.model = "sage",
          .hidden = {6},
          .epochs = 1,
          .seed = 7,
          .mini_batch = {.batch = 9, .fanouts = {3, 2}, .placement = how, .sampled_scores = true}};
}

nn::batch_order order_of(const io::dataset& d, const nn::training_options& o) {
  return {nn::vertices_in(d, io::split_part::train), o.mini_batch.batch, o.seed};
}

/// The sampler that the trainer of sage has.
sampling::neighbour_sampler<double> sampler_of(const mesh<host>& alone, const io::dataset& d,
                                               const nn::training_options& o) {
  return {nn::sampled_graph<double>(alone, d, o, graph::propagation_matrix::mean_normalized),
          {.fanouts = o.mini_batch.fanouts, .seed = o.seed}};
}

sampling::vertex_owners owners(const io::dataset& d, int ranks) {
  return {blocking::even(d.vertices, {ranks, 1, 1}, nesting::rows), vertex_rows.rows, ranks};
}

/// The vertices that the roots of a sample depend on, found by following the entries of its blocks.
std::set<global_index> input_frontier(const sampling::sample<double>& s) {
  std::set<local_index> reached;
  for (local_index v = 0; v < s.blocks.back().rows; ++v) reached.insert(v);
  for (std::size_t l = s.blocks.size(); l-- > 0;) {
    const auto& b = s.blocks[l];
    const std::set<local_index> targets = reached;
    for (const local_index v : targets)
      for (auto e = b.offsets[static_cast<std::size_t>(v)]; e < b.offsets[static_cast<std::size_t>(v) + 1];
           ++e)
        reached.insert(b.columns[static_cast<std::size_t>(e)]);
  }
  std::set<global_index> vertices;
  for (const local_index v : reached) vertices.insert(s.vertices[static_cast<std::size_t>(v)]);
  return vertices;
}

const io::dataset d = directed_graph(61);

TEST_CASE("gradients are those of the mean over the batch; a mean of the means of unequal parts is not") {
  const nn::training_options o = options_for(placement::owner);
  const mesh<host> alone(self::world(), mesh_shape{});
  nn::block_steps<double, host> steps(alone, d, o);
  auto sampler = sampler_of(alone, d, o);
  const auto x = graph::local_features<double>(alone, d, o.raw_features);
  // The roots that are given weigh as so many of `count`.
  const auto add = [&](std::span<const global_index> roots, std::size_t count) {
    sampling::sample<double> s;
    sampler(roots, 1, s);
    steps.run(gather_rows(x, s.vertices), s, static_cast<double>(roots.size()) / static_cast<double>(count),
              1);
  };
  const auto gradients = [&] {
    const auto all = steps.gradients();
    return std::vector<double>(all.begin(), all.end());
  };
  nn::batch_order order = order_of(d, o);
  order.begin(1);
  const auto batch = order.batch(0);
  steps.begin();
  add(batch, batch.size());
  const std::vector<double> expected = gradients();
  for (const bool equal : {false, true}) {
    const auto parts = equal ? sampling::equal_shares(batch, 3)
                             : sampling::owner_shares(sampler.graph(), batch, owners(d, 2));
    CHECK((parts[0].size() == parts[1].size()) == equal);
    steps.begin();
    for (const auto& part : parts) add(part, batch.size());
    CHECK(largest_difference(gradients(), expected) < 1e-14);
    steps.begin();
    for (const auto& part : parts) add(part, part.size() * parts.size());
    CHECK((largest_difference(gradients(), expected) < 1e-14) == equal);
    CHECK((largest_difference(gradients(), expected) > 1e-3) != equal);
  }
}

TEST_CASE("an iteration moves the model in one all-reduce of the gradients, and nothing else of it") {
  for (const placement how : {placement::even, placement::owner, placement::column_gather, placement::column})
    for (const int ranks : {1, 2, 3, 8}) {
      INFO("how ", static_cast<int>(how), ", ranks ", ranks);
      nn::training_options o = options_for(how);
      o.mini_batch.micro_batches = 3;
      on_threads(ranks, [&](const communicator& world) {
        const mesh<host> m(world, {ranks, 1, 1});
        batch_trainer t(m, d, o, row_1d);
        world.ledger().clear();
        t.epoch(1);
        const auto in_training = [&](auto keep) {
          return world.ledger().total(
              [&](const comm::ledger_entry& e) { return e.phase == "training" && keep(e); });
        };
        const traffic sums = in_training([](const auto& e) { return e.kind == operation::all_reduce; });
        const traffic others = in_training([](const auto& e) { return e.kind != operation::all_reduce; });
        const global_index weights = t.parameters().values().shape().cols, p = ranks;
        const auto iterations = static_cast<global_index>(t.iterations());
        const global_index of_loss = 2 * (p - 1);
        CHECK(world.all_reduce(sums.words) == iterations * 2 * (p - 1) * weights + of_loss);
        CHECK(sums.messages <= (iterations + 1) * 2 * (p - 1));
        CHECK((others.words == 0) == (how != placement::column || ranks == 1));
      });
    }
}

TEST_CASE("the rows gathered are the input frontier of each part, and travel once for all parts of a rank") {
  const mesh<host> alone(self::world(), mesh_shape{});
  for (const placement how : {placement::even, placement::owner})
    for (const int ranks : {1, 3, 4})
      for (const int parts : {1, 2, 5}) {
        INFO("how ", static_cast<int>(how), ", ranks ", ranks, ", parts ", parts);
        nn::training_options o = options_for(how);
        o.mini_batch.micro_batches = parts;
        auto sampler = sampler_of(alone, d, o);
        const sampling::vertex_owners owner = owners(d, ranks);
        nn::batch_order order = order_of(d, o);
        order.begin(1);
        std::size_t requested = 0;
        global_index remote = 0;
        sampling::sample<double> s;
        for (std::size_t i = 0; i < order.iterations(); ++i) {
          const auto lists = how == placement::owner
                                 ? sampling::owner_shares(sampler.graph(), order.batch(i), owner)
                                 : sampling::equal_shares(order.batch(i), ranks);
          for (std::size_t r = 0; r < lists.size(); ++r) {
            std::set<global_index> together;
            for (const auto& part : sampling::equal_shares(lists[r], parts)) {
              sampler(part, 1, s);
              const std::set<global_index> frontier = input_frontier(s);
              requested += frontier.size();
              together.insert(frontier.begin(), frontier.end());
            }
            for (const global_index v : together) remote += owner(v) != r;
          }
        }
        on_threads(ranks, [&](const communicator& world) {
          const auto r = batch_trainer(mesh<host>(world, {ranks, 1, 1}), d, o, row_1d).run();
          CHECK(r.mini_batch->requested_rows == static_cast<global_index>(requested));
          CHECK(r.mini_batch->remote_rows.total == remote);
        });
      }
}

/// Trains on batches with features in far memory, where all else is near, within `limit` bytes.
nn::training_result train_far(const mesh<host>& m, const nn::training_options& o, const io::dataset& of,
                              std::size_t limit) {
  const auto block = static_cast<std::size_t>(of.vertices / m.size() * of.features) * sizeof(double);
  m.queue().limit_memory(limit);
  use_far(m.queue(), {.store = new_far_store(), .window = 4096, .from = block});
  return batch_trainer(m, of, o, row_1d).run();
}

TEST_CASE("batches over far features have the losses of near ones, in all bits") {
  const io::dataset large = directed_graph(310);
  for (const placement how : {placement::even, placement::owner, placement::column, placement::column_gather})
    for (const int ranks : {1, 2}) {
      nn::training_options o = options_for(how);
      o.epochs = 2;
      std::vector<nn::epoch_report> expected;
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const nn::training_result r = batch_trainer(m, large, o, row_1d).run();
        if (m.rank() == 0) expected = r.epochs;
      });
      on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const nn::training_result r = train_far(m, o, large, std::size_t{1} << 30);
        for (std::size_t e = 0; e < 2; ++e) {
          CHECK(r.epochs[e].loss == expected[e].loss);
          CHECK(r.epochs[e].test_accuracy == expected[e].test_accuracy);
        }
        REQUIRE(r.far.has_value());
        if (ranks == 1) CHECK(r.far->read.total == 0);  // of the second epoch: all rows have stayed
      });
    }
}

TEST_CASE(
    "batches over far features read each row once with room for all, and less than they need with some") {
  const io::dataset large = directed_graph(310);
  nn::training_options o = options_for(placement::even);
  o.mini_batch.batch = 3;
  const mesh<host> alone(self::world(), mesh_shape{});
  auto sampler = sampler_of(alone, large, o);
  nn::batch_order order = order_of(large, o);
  std::size_t needed = 0, scored = 0;
  std::set<global_index> distinct;
  sampling::sample<double> s;
  order.begin(1);
  for (std::size_t i = 0; i < order.iterations(); ++i) {
    sampler(order.batch(i), 1, s);
    needed += s.vertices.size();
    distinct.insert(s.vertices.begin(), s.vertices.end());
  }
  for (const auto part : {io::split_part::train, io::split_part::validation, io::split_part::test}) {
    const std::vector<global_index> all = nn::vertices_in(large, part);
    for (std::size_t i = 0; i < all.size(); i += 3) {
      sampler(std::span(all).subspan(i, std::min<std::size_t>(3, all.size() - i)), 1, s);
      scored += s.vertices.size();
    }
  }
  const nn::training_result expected = batch_trainer(alone, large, o, row_1d).run();
  const auto rows_read = [&](std::size_t limit) {
    const nn::training_result r = train_far(mesh<host>(self::world(), mesh_shape{}), o, large, limit);
    CHECK(r.epochs[0].loss == doctest::Approx(expected.epochs[0].loss).epsilon(1e-12));
    return static_cast<std::size_t>(r.far->read.total) / (13 * sizeof(double));
  };
  CHECK(rows_read(std::size_t{1} << 30) == 310);
  const std::size_t some = rows_read(60000);  // scores are those of samples that nobody has foreseen
  CHECK(some >= distinct.size() + scored);
  CHECK(some < needed + scored);
}

}  // namespace test_mini_batch_trainer
