// SPDX-License-Identifier: Apache-2.0
// Every way of training takes the steps of a loop of one's own, with any optimiser, schedule and clipping,
// and ends where it is told to.
#include "partita/train/training.hpp"

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/checkpoint.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"
#include "support/scratch.hpp"

namespace test_training {

using namespace partita;
using namespace test_support;

const io::dataset d = directed_graph();

nn::training_options run_of(const std::string& model = "gcn", int epochs = 6) {
  return {.model = model, .hidden = {7}, .layers = model == "gcnii" ? 4 : 0, .epochs = epochs, .seed = 42};
}

/// How a run ended.
struct ending {
  std::vector<double> losses, weights;
  nn::training_result result;
};

/// With the classes that a loop of one's own has, on the whole graph.
ending loop(const host_mesh& m, const nn::training_options& o, const policy& p) {
  auto net = nn::make_model<double>(m, d, o, p);
  const nn::feature_matrix<double, host> x(m, d, o, net.row_blocking());
  nn::objective<double, host> labels(m, d, o, net.row_blocking());
  dense<double, vertex_rows, host> gradient(m, net.row_blocking(),
                                            blocking::even(d.classes, m.shape(), nesting::cols));
  nn::optimizer<double, host> optimizer({o.optimizer, o.learning_rate, o.momentum});
  nn::learning_rate rate(o.learning_rate, nn::schedule_of(o));
  ending end;
  for (int e = 1; e <= o.epochs; ++e) {
    optimizer.set_rate(rate.now());
    const double loss = labels.loss(
        net.forward(x.input(), {.training = true, .epoch = static_cast<std::uint64_t>(e)}), gradient);
    net.backward(gradient);
    if (o.clip > 0) nn::clip_gradients(net.parameters(), o.clip);
    optimizer.step(net.parameters());
    rate.end_epoch(loss);
    end.losses.push_back(loss);
  }
  end.weights = collect(net.parameters().values());
  return end;
}

/// Where a run is computed, and what it goes on from.
struct place {
  policy under = row_1d;
  mesh_shape shape = {};
  int stages = 1;
  int size() const { return stages * shape.size(); }
};

ending trained(const place& at, const nn::training_options& o, const fs::path& folder = {},
               int stop_after = 0, const std::function<nn::state_dict<double>()>& initial = {}) {
  ending end;
  on_threads(at.size(), [&](const communicator& world) {
    const host_mesh m(world, o.pipeline.stages > 0 ? mesh_shape{world.size(), 1, 1} : at.shape);
    nn::run_hooks<double> how;
    if (!folder.empty())
      how = nn::checkpoints_in<double>({.folder = folder, .every = 2, .resume = true}, o, d);
    int seen = 0;
    how.stop = [&] { return seen == stop_after; };
    how.initial = initial;
    const auto training = nn::make_training<double>(m, d, o, at.under, at.shape);
    ending mine;
    mine.result = training->run([&](const nn::epoch_report& r) { seen = r.epoch; }, how);
    for (const nn::epoch_report& r : mine.result.epochs) mine.losses.push_back(r.loss);
    mine.weights = all_values(*training);
    if (world.rank() == 0) end = mine;
  });
  return end;
}

void check_same(const ending& found, const ending& expected, double tolerance) {
  REQUIRE(found.losses.size() == expected.losses.size());
  CHECK(largest_difference(found.losses, expected.losses) <= tolerance);
  REQUIRE(found.weights.size() == expected.weights.size());
  CHECK(largest_difference(found.weights, expected.weights) <= tolerance);
}

/// One of everything: rules, curves, warm-up and clipping.
std::vector<std::pair<std::string, nn::training_options>> every_way(const nn::training_options& base) {
  using enum nn::rate_curve;
  std::vector<std::pair<std::string, nn::training_options>> all(5, {"", base});
  all[0].first = "adamw, steps";
  all[0].second.optimizer = nn::update_rule::adamw;
  all[0].second.schedule = {.curve = step, .period = 2, .factor = 0.5, .least = 1e-3};
  all[1].first = "sgd with momentum, cosine after a warm-up";
  all[1].second.optimizer = nn::update_rule::sgd;
  all[1].second.momentum = 0.9;
  all[1].second.schedule = {.curve = cosine, .period = 0, .warmup = 2};
  all[2].first = "sgd, plateaus";
  all[2].second.optimizer = nn::update_rule::sgd;
  all[2].second.learning_rate = 8;  // so that the loss rises
  all[2].second.schedule = {.curve = plateau, .period = 1, .factor = 0.25};
  all[3].first = "adam, clipped";
  all[3].second.clip = 0.05;
  all[4].first = "sgd, clipped, warm-up";
  all[4].second.optimizer = nn::update_rule::sgd;
  all[4].second.momentum = 0.5;
  all[4].second.learning_rate = 1;
  all[4].second.clip = 0.1;
  all[4].second.schedule = {.period = 0, .warmup = 3};
  if (sanitized) return {all.back()};
  return all;
}

TEST_CASE("on the whole graph training is the loop, bit for bit, under every policy") {
  for (const auto& [what, o] : every_way(run_of())) {
    INFO(what);
    ending serial;
    for_each_usual_mesh(std::array{1, 2, 4, 6}, [&](auto p, mesh_shape shape) {
      INFO(p.name, " on ", to_string(shape));
      ending expected;
      on_mesh(shape, [&](const host_mesh& m) {
        const ending mine = loop(m, o, p);
        if (m.rank() == 0) expected = mine;
      });
      check_same(trained({p, shape}, o), expected, 0);
      if (serial.losses.empty()) serial = expected;
      check_same(expected, serial, 1e-9);
    });
  }
}

TEST_CASE("batches of all vertices with all neighbours, and stages, take the same steps") {
  for (const auto& [what, o] : every_way(run_of("gcn"))) {
    nn::training_options with = o;
    with.dropout = 0;
    const ending expected = loop(host_mesh(self::world(), {1, 1, 1}), with, row_1d);
    with.mini_batch = {.batch = d.vertices, .fanouts = {-1, -1}};
    for (const int ranks : {1, 2, 4}) {
      INFO("batches, ", what, ", ranks ", ranks);
      check_same(trained({row_1d, {ranks, 1, 1}}, with), expected, 1e-9);
    }
  }
  for (const auto& [what, o] : every_way(run_of("gcnii"))) {
    nn::training_options with = o;
    const ending expected = loop(host_mesh(self::world(), {1, 1, 1}), with, row_1d);
    with.pipeline = {.stages = 2, .chunks = 3, .history = nn::chunk_history::exact};
    for (const int ranks : {1, 2}) {
      INFO("stages, ", what, ", of ", ranks);
      check_same(trained({row_1d, {ranks, 1, 1}, 2}, with), expected, 1e-9);
    }
  }
}

/// The ways above, and those of batches and stages, for which losses and scores go up and down.
std::vector<std::pair<place, nn::training_options>> every_mode() {
  nn::training_options whole = run_of("gcn", 30), batches = run_of("sage", 30), stages = run_of("gcnii", 30),
                       embedded = run_of("gcn", 30);
  for (nn::training_options* const o : {&whole, &batches, &stages}) {
    o->optimizer = nn::update_rule::sgd;
    o->momentum = 0.5;
    o->learning_rate = 0.5;
    o->clip = 1;
  }
  for (nn::training_options* const o : {&whole, &batches, &stages, &embedded}) {
    o->schedule = {.curve = nn::rate_curve::plateau, .period = 1, .factor = 0.5, .warmup = 2};
    o->patience = 4;
  }
  embedded.embedding = 5;
  embedded.learning_rate = 0.1;
  batches.mini_batch = {.batch = 9, .fanouts = {3, 2}};
  stages.pipeline = {.stages = 2, .chunks = 3, .history = nn::chunk_history::exact};
  return {{{row_1d, {1, 1, 1}}, whole},
          {{grid_2d, {2, 2, 1}}, whole},
          {{feature_column, {1, 6, 1}}, embedded},
          {{row_1d, {2, 1, 1}}, batches},
          {{row_1d, {4, 1, 1}}, batches},
          {{row_1d, {2, 1, 1}, 2}, stages},
          {{grid_2d, {2, 2, 1}}, embedded}};
}

TEST_CASE(
    "patience keeps the weights of the best epoch, and a run that goes on ends as one that never stopped") {
  for (const auto& [at, o] : every_mode()) {
    INFO(at.under.name, " on ", to_string(at.shape), ", ", o.model, ", batch ", o.mini_batch.batch);
    const ending whole = trained(at, o);
    const nn::training_result& r = whole.result;
    const auto epochs = static_cast<int>(r.epochs.size());
    REQUIRE(r.out_of_patience);
    CHECK_FALSE(r.stopped);
    CHECK(epochs == r.kept_epoch + o.patience);
    CHECK(r.kept_epoch == r.best_validation_epoch);
    CHECK(r.kept().test_accuracy == r.test_accuracy_at_best_validation);
    nn::training_options shorter = o;
    shorter.patience = 0;
    shorter.epochs = r.kept_epoch;
    CHECK(trained(at, shorter).weights == whole.weights);

    const scratch folder;
    for (const int stop_after : {3, r.kept_epoch + 1, 0, 0}) {
      const ending again = trained(at, o, folder.dir, stop_after);
      if (stop_after > 0) continue;
      CHECK(again.losses == whole.losses);
      CHECK(again.weights == whole.weights);
      CHECK(again.result.kept_epoch == r.kept_epoch);
      CHECK(again.result.out_of_patience);
    }
  }
}

TEST_CASE("epochs between evaluations have no scores, and checkpoints can be read") {
  nn::training_options o = run_of("gcn", 7);
  const ending every = trained({}, o);
  o.evaluate_every = 3;
  const scratch folder;
  const nn::training_result ended = trained({}, o, folder.dir, 4).result;
  REQUIRE(ended.epochs.size() == 4);  // is evaluated as the last one, which the checkpoint does not have
  CHECK(ended.epochs[3].train_accuracy == every.result.epochs[3].train_accuracy);
  CHECK(ended.epochs[3].validation_accuracy == every.result.epochs[3].validation_accuracy);
  CHECK(ended.kept().test_accuracy == every.result.epochs[3].test_accuracy);
  CHECK((ended.stopped && !ended.out_of_patience && ended.best_validation_epoch > 0));
  const ending some = trained({}, o, folder.dir);
  CHECK(some.result.resumed_from == 4);
  CHECK(some.losses == every.losses);
  CHECK(some.weights == every.weights);
  for (std::size_t k = 0; k < 7; ++k) {
    const nn::epoch_report &a = some.result.epochs[k], &b = every.result.epochs[k];
    const bool scored = k == 2 || k == 5 || k == 6;
    CHECK(std::isnan(a.train_accuracy) != scored);
    CHECK(std::isnan(a.validation_accuracy) != scored);
    if (scored) CHECK(a.test_accuracy == b.test_accuracy);
  }
}

std::string said(const std::function<void()>& act) {
  try {
    act();
    return "";
  } catch (const error& e) {
    return e.what();
  }
}

TEST_CASE(
    "a run begins with the parameters that it is given, in any order, and refuses those of another model") {
  for (const auto& [at, mode] : every_mode()) {
    nn::training_options o = mode;
    o.patience = 0;
    o.epochs = 2;
    o.clip = o.momentum = 0;
    o.optimizer = nn::update_rule::adam;
    o.schedule = {};
    nn::state_dict<double> learned;
    const place here = at;
    on_threads(at.size(), [&](const communicator& world) {
      const host_mesh m(world, o.pipeline.stages > 0 ? mesh_shape{world.size(), 1, 1} : here.shape);
      const auto training = nn::make_training<double>(m, d, o, here.under, here.shape);
      training->run();
      const auto mine = training->values();
      if (world.rank() == 0) learned = mine;
    });
    std::ranges::reverse(learned);
    nn::training_options next = o;
    next.epochs = 1;
    next.learning_rate = 1e-300;  // no step that changes anything
    next.seed = 7;
    const ending begun = trained(at, next, {}, 0, [&] { return learned; });
    std::ranges::reverse(learned);
    std::vector<double> wanted;
    for (const auto& p : learned) wanted.insert(wanted.end(), p.values.begin(), p.values.end());
    CHECK(largest_difference(begun.weights, wanted) < 1e-12);
  }
  const nn::training_options o = run_of("gcn", 1);
  const auto refusal = [&](auto change) {
    nn::trainer<double, host> t(host_mesh(self::world(), {1, 1, 1}), d, o,
                                nn::make_model<double>(host_mesh(self::world(), {1, 1, 1}), d, o, row_1d));
    nn::state_dict<double> values = t.values();
    change(values);
    return said([&] { t.assign(values); });
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK(refusal([](auto& v) { v.pop_back(); }) == "the model has a parameter b1, which the state lacks");
  CHECK(refusal([](auto& v) { v[0].name = "W7"; }) == "the model has a parameter W0, which the state lacks");
  CHECK(refusal([](auto& v) {
          v[0].shape = {7, 13};
        }) == "the model has a parameter W0 (13 x 7) where the state has one of 7 x 13");
  CHECK(refusal([](auto& v) {
          v.push_back({"more", {1, 1}, {0}});
        }) == "the state has a parameter more, which the model lacks");
}

TEST_CASE("options that do not go together are refused by name, and so is another checkpoint's") {
  const auto refused = [&](auto change) {
    nn::training_options o = run_of();
    change(o);
    return said([&] { nn::train_model<double>(host_mesh(self::world(), {1, 1, 1}), d, o, row_1d); });
  };
  CHECK(refused([](auto& o) { o.momentum = 0.5; }) == "a momentum of 0.500000 is for sgd; Adam has its own");
  CHECK(refused([](auto& o) { o.clip = 1, o.embedding = 4; }) ==
        "option clip and --embedding do not go together: gradients of its rows are not in the norm");
  CHECK(refused([](auto& o) { o.optimizer = nn::update_rule::sgd, o.embedding = 4; }) ==
        "option optimizer sgd is not for --embedding, whose rows Adam updates");
  CHECK(refused([](auto& o) { o.patience = 2, o.evaluate_every = 3; }) ==
        "option patience is less than --evaluate-every");
  CHECK(refused([](auto& o) { o.evaluate_every = 0; }) == "an evaluation is for at least one epoch, not 0");
  io::dataset none = d;
  std::vector<std::uint8_t> split(d.split.begin(), d.split.end());
  std::ranges::replace(split, 2, 0);
  none.split = split;
  nn::training_options o = run_of();
  o.patience = 3;
  CHECK(said([&] {
          nn::train_model<double>(host_mesh(self::world(), {1, 1, 1}), none, o, row_1d);
        }) == none.name + ": patience needs vertices for validation, and there are none");

  o = run_of();
  o.schedule.curve = nn::rate_curve::cosine;
  const scratch folder;
  trained({}, o, folder.dir);
  const std::string file = (folder.dir / "checkpoint-6.safetensors").string();
  o.epochs = 8;
  CHECK(said([&] { trained({}, o, folder.dir); }) ==
        file + ": that run was trained with --schedule-period 6, this one is with --schedule-period 8");
  o.schedule = {.period = 0};
  CHECK(said([&] { trained({}, o, folder.dir); }) ==
        file + ": that run was trained with --schedule cosine, this one is without --schedule");
}

}  // namespace test_training
