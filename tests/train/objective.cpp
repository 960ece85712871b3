// SPDX-License-Identifier: Apache-2.0
// Every task trains alike on whole graphs, in mini-batches and on stages, under every policy.
#include "partita/train/objective.hpp"

#include "laws/training_laws.hpp"
#include "partita/train/make_training.hpp"
#include "support/layers.hpp"

namespace test_objective {

using namespace test_support;

struct one_task {
  const char* name;
  io::dataset data;
  nn::training_options options;
};

nn::training_options run_of(nn::training_options o) {
  o.hidden = {7};
  o.epochs = 4;
  o.dropout = 0.4;
  o.seed = 5;
  return o;
}

std::vector<one_task> tasks() {
  const io::dataset d = directed_graph();
  const io::dataset values = with_values(d);
  return {{"weighted classes", d, run_of({.class_weights = {0.5, 2, 1, 0.25, 3}, .label_smoothing = 0.2})},
          {"labels", with_several_labels(d), run_of({})},
          {"squared", values, run_of({})},
          {"absolute", values, run_of({.error = nn::value_error::absolute})},
          {"huber", values, run_of({.error = nn::value_error::huber, .huber_delta = 0.5})}};
}

bool in_part(const io::dataset& d, std::size_t v, int part) { return d.split[v] == part; }

/// The loss of logits (n x C), by its formula.
double plain_loss(const io::dataset& d, const nn::training_options& o, const std::vector<double>& z) {
  const auto classes = static_cast<std::size_t>(d.classes);
  double total = 0, weight = 0;
  for (std::size_t v = 0; v < d.split.size(); ++v) {
    if (!in_part(d, v, 1)) continue;
    const double* const row = &z[v * classes];
    double exponentials = 0;
    for (std::size_t c = 0; c < classes; ++c) exponentials += std::exp(row[c]);
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t at = v * classes + c;
      if (d.task == io::task::classes) {
        const auto y = static_cast<std::size_t>(d.labels[v]);
        const double q = (c == y ? (1 - o.label_smoothing) * o.class_weights[y] : 0) +
                         o.label_smoothing * o.class_weights[c] / static_cast<double>(classes);
        total -= q * (row[c] - std::log(exponentials));
        if (c == 0) weight += o.class_weights[y];
      } else if (d.task == io::task::labels) {
        total += std::log(1 + std::exp(row[c])) - (d.label_matrix[at] == 1 ? row[c] : 0);
        ++weight;
      } else if (const double e = std::abs(row[c] - d.values[at]); !std::isnan(e)) {
        total += o.error == nn::value_error::squared    ? e * e
                 : o.error == nn::value_error::absolute ? e
                 : e <= o.huber_delta                   ? e * e / 2
                                                        : o.huber_delta * (e - o.huber_delta / 2);
        ++weight;
      }
    }
  }
  return total / weight;
}

/// The score of logits on the test set, by its formula.
double plain_score(const io::dataset& d, const std::vector<double>& z) {
  const auto classes = static_cast<std::size_t>(d.classes);
  double right = 0, wrong = 0, r_squared = 0;
  for (std::size_t v = 0; v < d.split.size(); ++v) {
    if (!in_part(d, v, 3)) continue;
    const auto row = std::span(z).subspan(v * classes, classes);
    if (d.task == io::task::classes)
      ++(std::ranges::max_element(row) - row.begin() == d.labels[v] ? right : wrong);
    for (std::size_t c = 0; d.task == io::task::labels && c < classes; ++c) {
      const bool is = d.label_matrix[v * classes + c] == 1, given = row[c] > 0;
      right += 2 * (is && given), wrong += is != given;
    }
  }
  if (d.task != io::task::values) return right / (right + wrong);
  for (std::size_t c = 0; c < classes; ++c) {
    double squares = 0, total = 0, of_squares = 0, number = 0;
    for (std::size_t v = 0; v < d.split.size(); ++v) {
      const double t = d.values[v * classes + c];
      if (!in_part(d, v, 3) || std::isnan(t)) continue;
      squares += std::pow(z[v * classes + c] - t, 2), total += t, of_squares += t * t, ++number;
    }
    r_squared += (1 - squares / (of_squares - total * total / number)) / static_cast<double>(classes);
  }
  return r_squared;
}

/// Losses, words and all scores are those of `expected`, but for rounding.
void check_scores(const nn::training_result& r, const nn::training_result& expected,
                  const std::string& what) {
  check_run(r, expected, 1e-9, what);
  const auto near = [](double a, double b) {
    CHECK(((std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-9 * (1 + std::abs(b))));
  };
  CHECK(std::abs(r.epochs.back().test_accuracy - expected.epochs.back().test_accuracy) < 1e-9);
  CHECK(r.scores.task == expected.scores.task);
  for (std::size_t k = 0; k < 3; ++k) {
    const nn::part_scores &a = r.scores.parts[k], &b = expected.scores.parts[k];
    CHECK(a.confusion == b.confusion);
    near(a.score, b.score), near(a.macro_f1, b.macro_f1), near(a.roc_auc, b.roc_auc);
    near(a.root_mean_square, b.root_mean_square), near(a.mean_absolute, b.mean_absolute);
  }
}

const std::vector<int> few_ranks = sanitized ? std::vector{1, 2} : std::vector{1, 2, 4, 6};

TEST_CASE("losses and scores are those of their formulas, gradients those of finite differences") {
  for (one_task t : tasks()) {
    CAPTURE(t.name);
    t.options.dropout = 0;
    on_mesh({1, 1, 1}, [&](const host_mesh& m) {
      nn::trainer<double, host> training(m, t.data, t.options,
                                         nn::make_model<double>(m, t.data, t.options, row_1d));
      const std::vector<double> z = collect(training.evaluate());
      const double test_score = training.split_scores(1)[2];
      CHECK(test_score == doctest::Approx(plain_score(t.data, z)).epsilon(1e-12));
      CHECK(training.scores().parts[2].score == test_score);
      CHECK(training.gradient_error(1e-6) < 1e-6);
      CHECK(training.step(1) == doctest::Approx(plain_loss(t.data, t.options, z)).epsilon(1e-12));
    });
  }
}

TEST_CASE("every task trains alike under every policy") {
  for (const one_task& t : tasks()) {
    const nn::training_result expected = serial(t.data, t.options);
    CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
    for_each_mesh(few_ranks, [&](const policy& p, mesh_shape shape) {
      with_mesh(shape, [&](const host_mesh& m) {
        check_scores(nn::train_model<double>(m, t.data, t.options, p), expected, t.name + where(p, shape));
      });
    });
  }
}

TEST_CASE("a batch of the whole training set, on any ranks and in any parts, trains as the whole graph") {
  for (one_task t : tasks()) {
    CAPTURE(t.name);
    t.options.model = "sage";
    const nn::training_result expected = serial(t.data, t.options);
    t.options.mini_batch = {.batch = 1000, .fanouts = {-1}};
    for (const int ranks : few_ranks)
      for (const int parts : {1, 3})
        for (const auto how : {sampling::placement::owner, sampling::placement::column}) {
          t.options.mini_batch.micro_batches = parts;
          t.options.mini_batch.placement = how;
          t.options.mini_batch.fanouts = {-1, -1};
          with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
            check_scores(nn::train<double>(m, t.data, t.options, row_1d), expected, t.name);
          });
        }
  }
}

TEST_CASE("small batches do not depend on the ranks, and scores of all neighbours are the exact ones") {
  for (one_task t : tasks()) {
    CAPTURE(t.name);
    t.options.model = "sage";
    t.options.mini_batch = {.batch = 6, .fanouts = {-1, -1}};
    nn::training_result expected;
    on_mesh({1, 1, 1},
            [&](const host_mesh& m) { expected = nn::train<double>(m, t.data, t.options, row_1d); });
    for (const int ranks : few_ranks)
      with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        check_scores(nn::train<double>(m, t.data, t.options, row_1d), expected, t.name);
        nn::training_options sampled = t.options;
        sampled.mini_batch.sampled_scores = true;
        const nn::training_result r = nn::train<double>(m, t.data, sampled, row_1d);
        for (std::size_t k = 0; k < 3; ++k)
          CHECK(r.scores.parts[k].score == doctest::Approx(expected.scores.parts[k].score).epsilon(1e-9));
      });
  }
}

TEST_CASE("on stages with exact history every task trains as on one rank") {
  for (one_task t : tasks()) {
    t.options.layers = 3;
    const nn::training_result expected = serial(t.data, t.options);
    t.options.pipeline = {.stages = 2, .chunks = 4, .history = nn::chunk_history::exact};
    for_each_mesh(std::array{1, 2, 3}, [&](const policy& p, mesh_shape inside) {
      if (sanitized && inside.size() > 1) return;
      on_threads(2 * inside.size(), [&](const communicator& world) {
        check_scores(nn::train<double>(host_mesh(world, {world.size(), 1, 1}), t.data, t.options, p, inside),
                     expected, t.name + where(p, inside));
      });
    });
  }
}

/// Four vertices of three classes or columns.
io::dataset four(std::vector<std::int64_t> labels, std::vector<std::uint8_t> matrix,
                 std::vector<double> values) {
  io::dataset d;
  d.name = "four";
  d.vertices = 4, d.classes = 3;
  d.labels = std::move(labels);
  d.task = !matrix.empty() ? io::task::labels : !values.empty() ? io::task::values : io::task::classes;
  d.label_matrix = std::move(matrix);
  d.values = std::move(values);
  d.split = std::vector<std::uint8_t>{1, 1, 1, 1};
  return d;
}

// Of PyTorch 2.1.2 in float64: cross_entropy(weight, label_smoothing), binary_cross_entropy_with_logits,
// mse_loss, l1_loss and huber_loss, and two entries of their gradients.
TEST_CASE("losses and gradients are those of PyTorch") {
  const auto m = alone();
  const auto z = from(m, {4, 3}, {0.5, -1, 2, 1.5, 0.25, -0.75, -2, 0.5, 1, 0, 3, -1});
  const auto check = [&](const io::dataset& d, const nn::training_options& o, double loss, double first,
                         double eighth) {
    dense<double, vertex_rows, host> g(m, z.shape());
    CHECK(nn::objective<double, host>(m, d, o, z.row_blocking()).loss(z, g) ==
          doctest::Approx(loss).epsilon(1e-14));
    CHECK(values(g)[0] == doctest::Approx(first).epsilon(1e-13));
    CHECK(values(g)[7] == doctest::Approx(eighth).epsilon(1e-13));
  };
  const std::vector<double> weights{0.5, 2, 1.25};
  const io::dataset classes = four({2, 0, 1, 1}, {}, {});
  check(classes, {.class_weights = weights, .label_smoothing = 0.1}, 0.5551364793575444, 0.035208056262326821,
        -0.20204289570855677);
  check(classes, {.class_weights = weights}, 0.45355426743034494, 0.038106606986964497, -0.22045488129328689);
  check(classes, {.label_smoothing = 0.1}, 0.55228284470769007, 0.035489264701675842, -0.14178527926288328);
  check(four({}, {1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0}, {}), {}, 0.79564610742591757, -0.031461722399845453,
        -0.031461722399845453);
  const io::dataset targets = four({}, {}, {0.25, -1, 1, 1, 0.5, -0.5, -1, 0.25, 3, 0.5, 2, -1.25});
  check(targets, {}, 0.65104166666666663, 0.041666666666666664, 0.041666666666666664);
  check(targets, {.error = nn::value_error::absolute}, 0.60416666666666663, 0.083333333333333329,
        0.083333333333333329);
  check(targets, {.error = nn::value_error::huber, .huber_delta = 0.5}, 0.20052083333333334,
        0.020833333333333332, 0.020833333333333332);
}

TEST_CASE("a loss of one's own is given the vertices of its rows") {
  const io::dataset d = directed_graph();
  const nn::loss_function<double, host> second_column = [](const auto& z,
                                                           std::span<const global_index> vertices, auto& g) {
    double total[] = {0};
    for (local_index i = 0; i < z.local().rows; ++i)
      for (local_index j = 0; j < z.local().cols; ++j) {
        const auto v = static_cast<double>(vertices[static_cast<std::size_t>(i)]);
        g.local()(i, j) = j == 1 ? v : 0;
        if (j == 1) total[0] += v * z.local()(i, j);
      }
    z.mesh().world().all_reduce(total);
    return total[0];
  };
  with_mesh({2, 2, 1}, [&](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {d.vertices, d.classes}, field(0));
    dense<double, vertex_rows, host> g(m, z.shape());
    nn::objective<double, host> whole(m, d, {}, z.row_blocking());
    whole.set_loss(second_column);
    double expected = 0;
    for (global_index v = 0; v < d.vertices; ++v) expected += static_cast<double>(v) * field(0)(v, 1);
    CHECK(whole.loss(z, g) == doctest::Approx(expected).epsilon(1e-13));
    CHECK(collect(g)[6] == 1);
  });
  const auto m = alone();
  const std::vector<global_index> vertices{6, 3};
  const auto z = from(m, {2, 5}, {0, 1, 0, 0, 0, 0, 2, 0, 0, 0});
  dense<double, vertex_rows, host> g(m, z.shape());
  nn::objective<double, host> rows(m, d, {}, z.row_blocking(), vertices);
  rows.set_loss(second_column, vertices);
  CHECK(rows.loss(z, g) == 6 * 1 + 3 * 2);
  CHECK(rows.weight() == 2);
}

TEST_CASE("what a task cannot use is refused by name") {
  const io::dataset d = directed_graph(), values = with_values(d);
  const auto complaint = [&](const io::dataset& data, const nn::training_options& o) -> std::string {
    try {
      nn::require_loss(data, o);
    } catch (const error& e) {
      return e.what();
    }
    return {};
  };
  CHECK(complaint(values, {.class_weights = {1, 2, 3}}) ==
        "directed graph: class weights are for classes, and this graph's vertices have values");
  CHECK(complaint(values, {.label_smoothing = 0.1}) ==
        "directed graph: label smoothing is for classes, and this graph's vertices have values");
  CHECK(complaint(d, {.error = nn::value_error::huber}) ==
        "directed graph: an error of values is for values, and this graph's vertices have classes");
  CHECK(complaint(d, {.class_weights = {1, 2, 3}}) == "3 class weights were given for 5 classes");
  CHECK_THROWS_AS(nn::balanced_class_weights(values), input_error);
  CHECK(nn::balanced_class_weights(four({0, 0, 0, 2}, {}, {})) == std::vector{4.0 / 9, 0.0, 4.0 / 3});
  const auto m = alone();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto make = [&](const io::dataset& data, const nn::training_options& o) {
    nn::objective<double, host>(m, data, o, blocking::even(4, m.shape(), nesting::rows));
  };
  CHECK_THROWS_WITH_AS(
      make(four({}, {}, std::vector<double>(12, none)), {}),
      "four: no vertex of the training set counts in the loss: none has a value that is a number",
      input_error);
  CHECK_THROWS_WITH_AS(make(four({0, 0, 0, 0}, {}, {}), {.class_weights = {0, 1, 1}}),
                       "four: no vertex of the training set counts in the loss: their classes have weight 0",
                       input_error);
}

}  // namespace test_objective
