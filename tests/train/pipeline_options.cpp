// SPDX-License-Identifier: Apache-2.0
// What the options of a pipeline mean, against a serial loop over vertices; and which are refused.

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_pipeline_options {

using namespace test_support;

using trainer = nn::pipeline_trainer<double, host>;
using rows_of_numbers = std::vector<std::vector<double>>;

constexpr std::size_t hidden = 6;
constexpr int chunks = 4;
const io::dataset d = directed_graph();

nn::training_options two_layers() {
  nn::training_options o{.hidden = {hidden},
                         .learning_rate = 0.05,
                         .dropout = 0,
                         .seed = 5,
                         .pipeline = {.stages = 2, .chunks = chunks}};
  for (global_index v = 0; v < directed_graph().vertices; ++v)
    o.pipeline.chunk_of.push_back(static_cast<int>(v * 5 % chunks));
  return o;
}

/// relu(A X W + b), then the same without relu, and the loss, vertex by vertex, with the neighbours that each
/// layer remembers.
class serial_model {
 public:
  explicit serial_model(const nn::training_options& o) : options_(o) {
    const auto a = graph::gcn_normalized(self::world(), data_);
    for (const auto& e : a) a_.push_back({e.row, e.col, a.final_value(e.row, e.col, e.value)});
    const std::size_t classes = static_cast<std::size_t>(data_.classes);
    for (const std::size_t width : {hidden, classes}) remembered_.push_back(rows(width));
    kept_ = remembered_;
  }

  /// What epoch e computes with these parameters; `exact`: no neighbour is old.
  double loss(const std::vector<double>& parameters, int e, bool exact) {
    const nn::pipeline_options& how = options_.pipeline;
    if (exact) {
      remembered_ = tables(parameters);
      kept_ = remembered_;
      return of_logits(all_rows(parameters));
    }
    if (how.history == nn::chunk_history::zero)
      remembered_ = {rows(hidden), rows(static_cast<std::size_t>(data_.classes))};
    else if (how.window > 1)
      remembered_ = kept_;
    rows_of_numbers z = rows(static_cast<std::size_t>(data_.classes));
    for (const int c : nn::chunk_order(options_.seed, static_cast<std::uint64_t>(e), chunks, how.shuffle))
      run(parameters, z, [&](std::size_t v) { return how.chunk_of[v] == c; });
    if (e % how.window == 0) kept_ = remembered_;
    return of_logits(z);
  }
  /// The rows that are read become those of the exact computation.
  void refresh(const std::vector<double>& parameters) { kept_ = remembered_ = tables(parameters); }
  double exact_loss(const std::vector<double>& parameters) const {
    return serial_model(options_).loss(parameters, 1, true);
  }

 private:
  rows_of_numbers rows(std::size_t width) const {
    return rows_of_numbers(static_cast<std::size_t>(data_.vertices), std::vector<double>(width, 0));
  }
  std::vector<rows_of_numbers> tables(const std::vector<double>& parameters) const {
    serial_model fresh(options_);
    fresh.all_rows(parameters);
    return fresh.remembered_;
  }
  rows_of_numbers all_rows(const std::vector<double>& parameters) {
    rows_of_numbers z = rows(static_cast<std::size_t>(data_.classes));
    run(parameters, z, [](std::size_t) { return true; });
    return z;
  }

  template <class Has>
  void run(const std::vector<double>& parameters, rows_of_numbers& z, Has has) {
    rows_of_numbers h = rows(static_cast<std::size_t>(data_.features));
    std::vector<double> row(h[0].size());
    for (std::size_t v = 0; v < h.size(); ++v) {
      data_.vertex_features.fill_row(static_cast<global_index>(v), row);
      const double sum = data_.vertex_features.row_sum(static_cast<global_index>(v));
      for (std::size_t j = 0; j < row.size(); ++j) h[v][j] = row[j] / sum;
    }
    std::size_t at = 0;
    for (std::size_t l = 0; l < 2; ++l) {
      const std::size_t in = h[0].size(), out = l == 0 ? hidden : static_cast<std::size_t>(data_.classes);
      const double* const weight = &parameters[at];
      const double* const bias = weight + in * out;
      at += in * out + out;
      rows_of_numbers& table = remembered_[l];
      rows_of_numbers next = rows(out);
      for (std::size_t v = 0; v < h.size(); ++v)
        for (std::size_t j = 0; j < out && has(v); ++j) {
          table[v][j] = 0;
          for (std::size_t i = 0; i < in; ++i) table[v][j] += h[v][i] * weight[i * out + j];
        }
      for (const auto& e : a_)
        for (std::size_t j = 0; j < out; ++j)
          next[static_cast<std::size_t>(e.row)][j] += e.value * table[static_cast<std::size_t>(e.col)][j];
      for (std::size_t v = 0; v < h.size(); ++v)
        for (std::size_t j = 0; j < out; ++j) {
          next[v][j] += bias[j];
          if (l == 0) next[v][j] = std::max(next[v][j], 0.0);
          if (l == 1 && has(v)) z[v][j] = next[v][j];
        }
      h = next;
    }
  }
  double of_logits(const rows_of_numbers& z) const {
    double sum = 0;
    int count = 0;
    for (std::size_t v = 0; v < z.size(); ++v) {
      if (data_.split[v] != static_cast<std::uint8_t>(io::split_part::train)) continue;
      double all = 0;
      for (const double x : z[v]) all += std::exp(x);
      sum += std::log(all) - z[v][static_cast<std::size_t>(data_.labels[v])];
      ++count;
    }
    return sum / count;
  }

  nn::training_options options_;
  io::dataset data_ = directed_graph();
  std::vector<triplet<double>> a_;
  std::vector<rows_of_numbers> remembered_, kept_;  ///< of each layer, what it multiplies with A
};

/// Trains over two stages; before each epoch check(trainer, epoch, parameters) must have the loss that the
/// epoch is to have.
void check_losses(const nn::training_options& o, int epochs, auto make) {
  on_threads(2, [&](const communicator& world) {
    auto expected = make();
    trainer t(mesh<host>(world, {2, 1, 1}), d, o, row_1d, {1, 1, 1});
    for (int e = 1; e <= epochs; ++e) {
      const std::vector<double> parameters = all_values(t);
      const double loss = expected(parameters, e);
      const nn::epoch_report r = t.epoch(e);
      CAPTURE(e);
      CHECK(std::abs(r.loss - loss) < 1e-12);
    }
  });
}

TEST_CASE("rows of chunks that have not run are those of the last epoch of the window before, or zeros") {
  for (const int window : {1, 2, 3, 20})
    for (const auto history : {nn::chunk_history::window, nn::chunk_history::zero})
      for (const bool shuffle : {true, false}) {
        nn::training_options o = two_layers();
        o.pipeline.history = history;
        o.pipeline.window = window;
        o.pipeline.shuffle = shuffle;
        if (history == nn::chunk_history::zero && window > 1) continue;
        INFO("window ", window, ", shuffle ", shuffle);
        check_losses(o, 8, [&] {
          return [model = serial_model(o)](const std::vector<double>& w, int e) mutable {
            return model.loss(w, e, false);
          };
        });
      }
}

TEST_CASE("exact epochs come first, and leave their rows to those that follow") {
  for (const int window : {1, 3}) {
    nn::training_options o = two_layers();
    o.pipeline.window = window;
    o.pipeline.exact_epochs = 2;
    check_losses(o, 6, [&] {
      return [model = serial_model(o)](const std::vector<double>& w, int e) mutable {
        return model.loss(w, e, e <= 2);
      };
    });
  }
}

TEST_CASE("a guard that reports compares with the exact loss, and changes nothing") {
  nn::training_options o = two_layers();
  o.pipeline.window = 2;
  o.epochs = 6;
  on_mesh({2, 1, 1}, [&](const host_mesh& m) {
    const nn::training_result without = nn::train<double>(m, d, o, row_1d, {1, 1, 1});
    CHECK(without.pipeline->comparisons.empty());
    nn::training_options guarded = o;
    guarded.pipeline.guard = 3;
    guarded.pipeline.tolerance = 0;
    trainer t(m, d, guarded, row_1d, {1, 1, 1});
    for (int e = 1; e <= 6; ++e) {
      const double exact = serial_model(o).exact_loss(all_values(t));
      const nn::epoch_report r = t.epoch(e);
      CHECK(r.loss == without.epochs[static_cast<std::size_t>(e) - 1].loss);
      CHECK(r.comparison.has_value() == (e % 3 == 0));
      if (!r.comparison) continue;
      CHECK(r.comparison->epoch == e);
      CHECK(r.comparison->loss == r.loss);
      CHECK(std::abs(r.comparison->exact_loss - exact) < 1e-12);
      CHECK(r.comparison->diverged);
    }
    guarded.pipeline.tolerance = 1e3;
    guarded.pipeline.least_cosine = -1;
    const nn::training_result allowed = nn::train<double>(m, d, guarded, row_1d, {1, 1, 1});
    for (const auto& c : allowed.pipeline->comparisons) CHECK(!c.diverged);
  });
}

TEST_CASE("a guard that refreshes gives the next epoch the rows of the exact computation") {
  nn::training_options o = two_layers();
  o.pipeline.window = 5;
  o.pipeline.guard = 2;
  o.pipeline.tolerance = 0;
  o.pipeline.on_divergence = nn::guard_action::refresh;
  check_losses(o, 7, [&] {
    return [model = serial_model(o)](const std::vector<double>& w, int e) mutable {
      if (e % 2 == 1 && e > 1) model.refresh(w);
      return model.loss(w, e, false);
    };
  });
  o.pipeline.tolerance = 1e3;  // it has no reason to
  check_losses(o, 4, [&] {
    return [model = serial_model(o)](const std::vector<double>& w, int e) mutable {
      return model.loss(w, e, false);
    };
  });
}

TEST_CASE("a guard that warms up makes the next epochs exact, compares, and makes twice as many exact") {
  nn::training_options o = two_layers();
  o.pipeline.window = 4;
  o.pipeline.guard = 3;
  o.pipeline.tolerance = 0;
  o.pipeline.on_divergence = nn::guard_action::warm_up;
  check_losses(o, 11, [&] {
    return [model = serial_model(o)](const std::vector<double>& w, int e) mutable {
      return model.loss(w, e, (e > 3 && e <= 6) || e > 7);
    };
  });
}

TEST_CASE("parameters of all stages make the whole model, and stages can be given those of another") {
  for (const char* name : {"gcn", "gcnii", "resgcn"}) {
    nn::training_options o = two_layers();
    o.model = name;
    o.layers = 4;
    o.dropout = 0.4;
    on_threads(4, [&](const communicator& world) {
      CAPTURE(name);
      const mesh<host> m(world, {4, 1, 1});
      trainer t(m, d, o, row_1d, {2, 1, 1});
      t.step(1), t.step(2);
      const std::vector<double> parameters = all_values(t);
      const mesh<host> alone(self::world(), {1, 1, 1});
      auto net = nn::make_model<double>(alone, d, o, row_1d);
      REQUIRE(net.parameters().values().values().size() == parameters.size());
      std::ranges::copy(parameters, net.parameters().values().values().begin());
      const nn::feature_matrix<double, host> x(alone, d, o,
                                               blocking::even(d.vertices, {1, 1, 1}, nesting::rows));
      const std::vector<double> whole = collect(net.forward(x.input(), {}));
      const auto& logits = t.evaluate();
      const blocking rows = blocking::even(d.vertices, {2, 1, 1}, nesting::rows);
      const nn::chunked_vertices order(d, rows, o.pipeline.chunk_of, chunks);
      if (t.stage() == 1) {
        const std::vector<double> found = collect(logits);
        double most = 0;
        for (std::size_t i = 0; i < order.vertices().size(); ++i)
          for (std::size_t j = 0; j < 5; ++j)
            most = std::max(most, std::abs(found[i * 5 + j] -
                                           whole[static_cast<std::size_t>(order.vertices()[i]) * 5 + j]));
        CHECK(most < 1e-12);
      }
      nn::training_options four = o;
      four.pipeline.stages = 4;
      trainer other(m, d, four, row_1d, {1, 1, 1});
      other.assign(t.values());
      CHECK(all_values(other) == parameters);
      other.evaluate();
    });
  }
}

TEST_CASE("options that no pipeline can have are refused by name") {
  const auto refused = []<class Error>(Error, const std::string& part, auto change) {
    nn::training_options o = two_layers();
    change(o);
    on_threads(2, [&](const communicator& world) {
      expect_error<Error>(part, [&] { trainer(mesh<host>(world, {2, 1, 1}), d, o, row_1d, {1, 1, 1}); });
    });
  };
  const auto refuses = [&](const std::string& part, auto change) { refused(error(""), part, change); };
  const auto refuses_shape = [&](const std::string& part, auto change) {
    refused(shape_error(""), part, change);
  };
  refuses("an embedding cannot be learned over stages", [](auto& o) { o.embedding = 4; });
  refuses("mini-batches do not pass through stages", [](auto& o) { o.mini_batch.batch = 4; });
  refuses("activation checkpointing is not available with stages",
          [](auto& o) { o.recompute = nn::activation_checkpointing::always; });
  refuses("a pipeline has at least one stage, not 0", [](auto& o) { o.pipeline.stages = 0; });
  refuses("a pipeline has at least one chunk, not -1", [](auto& o) { o.pipeline.chunks = -1; });
  refuses("62 chunks of 61 vertices", [](auto& o) {
    o.pipeline.chunks = 62;
    o.pipeline.chunk_of.clear();
  });
  refuses("history is kept for at least one epoch, not 0", [](auto& o) { o.pipeline.window = 0; });
  refuses("the guard interval must be 0 or positive, not -2", [](auto& o) { o.pipeline.guard = -2; });
  refuses("model gat cannot be cut into stages; gcn, sage, gin, gcnii and resgcn can",
          [](auto& o) { o.model = "gat"; });
  refuses("model sage with max aggregation cannot be cut into stages", [](auto& o) {
    o.model = "sage";
    o.aggregation = nn::aggregation::max;
  });
  refuses("model gcn in its decoupled form cannot be cut into stages",
          [](auto& o) { o.coupling = nn::coupling::decoupled; });
  refuses_shape("3 chunk numbers for 61 vertices", [](auto& o) { o.pipeline.chunk_of = {0, 0, 0}; });
  refuses_shape("vertex 0 is in chunk 4 of 4", [](auto& o) { o.pipeline.chunk_of[0] = 4; });
  refuses_shape("a stage has at least one layer, not 0", [](auto& o) { o.pipeline.layers = {2, 0}; });
  refuses_shape("2 stages with 3 layers in total were given; 2 stages and 2 layers were expected",
                [](auto& o) {
                  o.pipeline.layers = {1, 2};
                });

  nn::training_options o = two_layers();
  with_mesh({3, 1, 1}, [&](const host_mesh& m) {
    expect_error<mesh_error>("3 ranks are not 2 stages of a mesh 1x1x1", [&] {
      trainer(m, d, o, row_1d, {1, 1, 1});
    });
    nn::training_options three = o;
    three.pipeline.stages = 3;
    expect_error<shape_error>("a model of 2 layers with parameters cannot be cut into 3 stages", [&] {
      trainer(m, d, three, row_1d, {1, 1, 1});
    });
  });
}

}  // namespace test_pipeline_options
