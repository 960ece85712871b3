// SPDX-License-Identifier: Apache-2.0
// Losses, optimisers, schedules and clipping are PyTorch's, in every way of training.

#include <cmath>
#include <map>

#include "laws/training_laws.hpp"
#include "partita/train/make_training.hpp"
#include "support/matrices.hpp"

namespace test_train_pytorch {

using namespace test_support;

constexpr global_index n = 14, f = 5, classes = 3;

/// Directed, without loops; vertex 13 has no edges, vertex 0 none into it.
io::dataset graph_for(io::task task) {
  io::dataset d;
  d.name = "as in PyTorch";
  d.vertices = n, d.features = f, d.classes = classes, d.task = task;
  d.edges = {{0, 1},  {0, 2}, {1, 3}, {1, 4},  {2, 6},  {2, 7},  {3, 10}, {3, 11}, {5, 2},  {6, 5},
             {6, 10}, {7, 8}, {7, 9}, {8, 10}, {8, 11}, {10, 3}, {10, 4}, {11, 6}, {12, 6}, {12, 9}};
  std::vector<double> x;
  for (global_index v = 0; v < n; ++v) {
    for (global_index j = 0; j < f; ++j) x.push_back(std::cos(static_cast<double>(v * f + j)));
    d.split.push_back(static_cast<std::uint8_t>(v % 3 != 0 ? 1 : v % 2 != 0 ? 2 : 3));
    if (task == io::task::classes) d.labels.push_back(v % 5 != 0 ? (v * v + v) / 2 % classes : 1);
    for (global_index c = 0; c < classes; ++c) {
      if (task == io::task::labels)
        d.label_matrix.push_back(static_cast<std::uint8_t>((v * (c + 2) + c) % 3 == 0));
      if (task == io::task::values) d.values.push_back(2 * std::sin(static_cast<double>(v + c)));
    }
  }
  d.vertex_features = io::feature_table(n, f, std::move(x));
  return d;
}

/// Six losses of PyTorch 2.1.2 in float64: gcn of widths 5, 4, 3 with given weights, no dropout, weight decay
/// 0.02 of the first layer; Adam with learning rate 0.1 where the name does not say otherwise.
const std::map<std::string, std::vector<double>> losses{
    {"adam",
     {1.2307052717548852, 1.089338472148106, 0.9676974003894147, 0.8678217023672441, 0.7863253511449733,
      0.7251475512756371}},
    {"adamw",
     {1.2307052717548852, 1.089634221560817, 0.9703111146904101, 0.8698096470816616, 0.7850013573843359,
      0.7224774493447913}},
    {"sgd",
     {1.2307052717548852, 1.0396026080269531, 0.9187180633280813, 0.8408415129061084, 0.7904949304666494,
      0.7573527415760772}},
    {"momentum",
     {1.2307052717548852, 1.0396026080269531, 0.8196368399257102, 0.716720825803372, 0.7233936798772604,
      0.7299808440735358}},
    {"step",
     {1.2307052717548852, 1.089338472148106, 0.9676974003894147, 0.9135817519009203, 0.865192373090208,
      0.8421021958787076}},
    {"cosine",
     {1.2307052717548852, 1.089338472148106, 0.9749154301190538, 0.8960989703841581, 0.8492708102186213,
      0.8272536291693187}},
    {"warmup_cosine",
     {1.2307052717548852, 1.1556617928746717, 1.0279810810886696, 0.9204633756678311, 0.841163522968695,
      0.8012819567493821}},
    {"plateau",
     {1.2307052717548852, 1.8836431856462035, 1.2512349431593626, 5.863027360780294, 1.6476099358333145,
      1.0671307577361437}},
    {"clip",
     {1.2307052717548852, 1.167572008888771, 1.1087587487995982, 1.05411512312064, 1.0035385534403847,
      0.9569637980723399}},
    {"class_weights",
     {1.3126519540802792, 1.0854587754108793, 0.8845136045117556, 0.7083888571056285, 0.5884522431399742,
      0.5170802068017905}},
    {"smoothing",
     {1.2189270154894059, 1.0906634535021584, 0.9826704985863147, 0.8986547334393791, 0.8340765209991516,
      0.7897923260315525}},
    {"weights_smoothing",
     {1.2801615277384766, 1.066413267437738, 0.8817425007356379, 0.7254434985155024, 0.6256232501108787,
      0.5724512385545532}},
    {"zero_weight",
     {1.3169680172904779, 1.045219698580907, 0.806277873819966, 0.5933586130489332, 0.4268262560957069,
      0.31350887194699273}},
    {"labels",
     {0.5369624261725102, 0.4899441567397798, 0.44437875834648993, 0.40152932413750225, 0.36507492485059245,
      0.33136411124799253}},
    {"squared",
     {2.441439851986357, 2.1819245229264888, 2.034449081694626, 1.9430359577836513, 1.9190475355004653,
      1.9395033751632025}},
    {"absolute",
     {1.380598056888957, 1.329086078660285, 1.3132272637136366, 1.2924462839202548, 1.2747690584376843,
      1.257513433759055}},
    {"huber",
     {0.9229991935758052, 0.8737321149611433, 0.8449888370539929, 0.8165197998437903, 0.784648145262156,
      0.7701588554648434}},
};

/// What each of them is trained with.
struct one_run {
  std::string name;
  io::task task;
  nn::training_options how;
};

std::vector<one_run> runs() {
  using enum nn::rate_curve;
  const nn::training_options base{.hidden = {4},
                                  .epochs = 6,
                                  .learning_rate = 0.1,
                                  .weight_decay = 0.02,
                                  .dropout = 0,
                                  .raw_features = true};
  std::vector<one_run> all;
  const auto add = [&](const char* name, io::task task, auto change) {
    all.push_back({name, task, base});
    change(all.back().how);
  };
  using options = nn::training_options;
  const auto classes_with = [&](const char* name, auto change) { add(name, io::task::classes, change); };
  const auto sgd = [](options& o) { o.optimizer = nn::update_rule::sgd, o.learning_rate = 0.5; };
  classes_with("adam", [](options&) {});
  classes_with("adamw", [](options& o) { o.optimizer = nn::update_rule::adamw; });
  classes_with("sgd", sgd);
  classes_with("momentum", [&](options& o) { sgd(o), o.momentum = 0.9; });
  classes_with("step", [](options& o) { o.schedule = {.curve = step, .period = 2, .factor = 0.5}; });
  classes_with("cosine", [](options& o) { o.schedule = {.curve = cosine, .period = 6}; });
  classes_with("warmup_cosine", [](options& o) { o.schedule = {.curve = cosine, .period = 0, .warmup = 2}; });
  classes_with("plateau", [&](options& o) {
    sgd(o), o.learning_rate = 9, o.schedule = {.curve = plateau, .period = 1, .factor = 0.25};
  });
  classes_with("clip", [&](options& o) { sgd(o), o.clip = 0.2; });
  classes_with("class_weights", [](options& o) { o.class_weights = {0.5, 2, 1.25}; });
  classes_with("smoothing", [](options& o) { o.label_smoothing = 0.1; });
  classes_with("weights_smoothing", [](options& o) {
    o.class_weights = {0.5, 2, 1.25}, o.label_smoothing = 0.1;
  });
  classes_with("zero_weight", [](options& o) { o.class_weights = {0, 2, 1.25}, o.label_smoothing = 0.1; });
  add("labels", io::task::labels, [](options&) {});
  add("squared", io::task::values, [](options&) {});
  add("absolute", io::task::values, [](options& o) { o.error = nn::value_error::absolute; });
  add("huber", io::task::values, [](options& o) { o.error = nn::value_error::huber; });
  return all;
}

void check(const host_mesh& m, const one_run& run, const policy& p, mesh_shape inside = {}) {
  const io::dataset d = graph_for(run.task);
  const auto training = nn::make_training<double>(m, d, run.how, p, inside);
  nn::state_dict<double> weights = training->values();
  double start = 1;
  for (auto& w : weights) {
    for (std::size_t k = 0; k < w.values.size(); ++k)
      w.values[k] = 0.6 * std::sin(start + static_cast<double>(k));
    ++start;
  }
  training->assign(weights);
  std::vector<double> found;
  const nn::training_result result = training->run();
  for (const nn::epoch_report& r : result.epochs) found.push_back(r.loss);
  INFO(run.name, ", policy ", std::string(p.name), ", mesh ", to_string(m.shape()));
  CHECK(largest_difference(found, losses.at(run.name)) <= 1e-9);
  CHECK(result.words_received.total == result.predicted_words_received.total);
}

TEST_CASE("whole graphs: the losses of PyTorch under every policy") {
  CHECK(runs().size() == losses.size());
  for_each_mesh(std::array{1, 2, 4, 6}, [&](const policy& p, mesh_shape shape) {
    if (sanitized && shape.size() > 2) return;
    with_mesh(shape, [&](const host_mesh& m) {
      for (const one_run& run : runs()) check(m, run, p);
    });
  });
}

TEST_CASE("one batch of all vertices with all neighbours: the losses of PyTorch for every placement") {
  using enum sampling::placement;
  for (const int ranks : sanitized ? std::vector{2} : std::vector{1, 2, 3})
    on_threads(ranks, [&](const communicator& world) {
      for (one_run run : runs())
        for (const auto placement : {even, owner, column, column_gather}) {
          run.how.mini_batch = {.batch = n, .fanouts = {-1}, .placement = placement, .micro_batches = 2};
          check(host_mesh(world, {ranks, 1, 1}), run, row_1d);
        }
    });
}

TEST_CASE("stages that miss nothing: the losses of PyTorch") {
  for (const int inside : {1, 2})
    on_threads(2 * inside, [&](const communicator& world) {
      for (one_run run : runs()) {
        run.how.pipeline = {.stages = 2, .chunks = 3, .history = nn::chunk_history::exact};
        check(host_mesh(world, {2 * inside, 1, 1}), run, row_1d, {inside, 1, 1});
      }
    });
}

TEST_CASE("the same bits on reproducible meshes, with words as predicted") {
  for (const int ranks : sanitized ? std::vector{2} : std::vector{1, 2, 3})
    on_threads(ranks, [&](const communicator& world) {
      for (const bool batches : {false, true})
        for (one_run run : runs()) {
          if (batches) run.how.mini_batch = {.batch = 5, .fanouts = {2, 2}};
          const io::dataset d = graph_for(run.task);
          const auto training =
              nn::make_training<double>(reproducible_mesh(world, {ranks, 1, 1}), d, run.how, row_1d);
          const nn::training_result found = training->run();
          const io::dataset same = graph_for(run.task);
          const auto serial_run =
              nn::make_training<double>(reproducible_mesh(self::world(), {1, 1, 1}), same, run.how, row_1d)
                  ->run();
          INFO(run.name, ", batches ", batches, ", ranks ", ranks);
          for (std::size_t e = 0; e < 6; ++e) CHECK(found.epochs[e].loss == serial_run.epochs[e].loss);
          CHECK(found.words_received.total == found.predicted_words_received.total);
        }
    });
}

}  // namespace test_train_pytorch
