// SPDX-License-Identifier: Apache-2.0
// Models in files: what was saved under one policy computes the same under every other, on any ranks.
#include "partita/train/model_file.hpp"

#include <map>

#include "laws/training_laws.hpp"
#include "partita/io/reordered.hpp"
#include "partita/train/make_training.hpp"
#include "support/matrices.hpp"
#include "support/scratch.hpp"

namespace test_train_model_file {

using namespace test_support;

using values_list = std::vector<nn::parameter_values<double>>;

nn::training_options options_for(std::string model) {
  const int layers = model == "gcnii" || model == "resgcn" ? 3 : 0;
  return {.model = std::move(model), .hidden = {6}, .layers = layers, .heads = 2, .hops = 3, .epochs = 2};
}

/// What was saved, and what the model computed then, in the order of `vertices`.
struct saved_run {
  values_list values;
  nn::model_outputs<double> outputs;
};

/// Blocks of a mesh network are one layer.
bool has_hidden_rows(const nn::training_options& o) { return o.model != "meshgraphnet"; }

/// Trains, saves and returns what was saved, all in the order that `vertices` gives back.
saved_run saved(auto& training, const mesh<host>& m, const fs::path& path, const io::dataset& d,
                const nn::training_options& o, const std::vector<global_index>& vertices = {}) {
  training.run();
  saved_run run{training.values(), training.outputs(has_hidden_rows(o))};
  for (auto& p : run.values)
    if (p.name == nn::embedding_name)
      p.values = nn::in_order_of_vertices(std::move(p.values), p.shape.cols, vertices);
  nn::model_outputs<double>& found = run.outputs;
  found.logits = nn::in_order_of_vertices(std::move(found.logits), d.classes, vertices);
  found.hidden = nn::in_order_of_vertices(std::move(found.hidden), found.hidden_width, vertices);
  if (m.rank() == 0) nn::save_model(path, run.values, o, d);
  return run;
}

saved_run saved_by_trainer(int ranks, mesh_shape shape, const policy& p, const fs::path& path,
                           const io::dataset& d, const nn::training_options& o,
                           const std::vector<global_index>& vertices = {}) {
  saved_run first;
  on_threads(ranks, [&](const communicator& world) {
    const mesh<host> m(world, shape);
    nn::trainer<double, host> training(m, d, o, nn::make_model<double>(m, d, o, p));
    saved_run run = saved(training, m, path, d, o, vertices);
    if (world.rank() == 0) first = std::move(run);
  });
  return first;
}

/// How far logits and hidden rows of a model from the file are from those that were computed when it was
/// saved.
double difference(int ranks, const policy& p, const fs::path& path, const io::dataset& d,
                  const saved_run& expected) {
  const io::safetensors_file file = io::load_safetensors(path);
  const nn::saved_model model = nn::saved_model_of(file);
  double found = 1;
  on_threads(ranks, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(p, ranks));
    nn::predictor<double, host> predicting(m, d, model.options, p);
    nn::load_parameters(file, predicting.parameters());
    if (auto* const x = predicting.embedding()) nn::load_embedding(file, *x);
    const nn::model_outputs<double> outputs = predicting.outputs(has_hidden_rows(model.options));
    if (world.rank() != 0) {
      CHECK(outputs.logits.empty());
      return;
    }
    CHECK(outputs.hidden_width == expected.outputs.hidden_width);
    found = std::max(largest_difference(outputs.logits, expected.outputs.logits),
                     largest_difference(outputs.hidden, expected.outputs.hidden));
  });
  return found;
}

/// What reading the file of a model complains of, on one rank.
std::string refused(const scratch& folder, const fs::path& path, const io::dataset& d,
                    const nn::training_options& o) {
  std::string text;
  on_mesh({1, 1, 1}, [&](const host_mesh& m) {
    nn::predictor<double, host> predicting(m, d, o, row_1d);
    const std::vector<double> before = collect(predicting.parameters().values());
    text = complaint(folder.dir, [&] {
      const io::safetensors_file file = io::load_safetensors(path);
      nn::load_parameters(file, predicting.parameters());
      if (auto* const x = predicting.embedding()) nn::load_embedding(file, *x);
    });
    CHECK(collect(predicting.parameters().values()) == before);
  });
  return text;
}

const io::dataset d = directed_graph(29);

TEST_CASE("a model saved on four ranks predicts the same under other policies and on other ranks") {
  const scratch folder;
  for (const nn::training_options& o : every_variant(options_for("gcn"))) {
    INFO("o.model ", o.model, ", static_cast<int>(o.coupling) ", static_cast<int>(o.coupling));
    const saved_run run = saved_by_trainer(4, {2, 2, 1}, grid_2d, folder / "m", d, o);
    CHECK(std::ssize(run.outputs.logits) == 29 * 5);
    CHECK(difference(3, row_1d, folder / "m", d, run) < 1e-12);
    CHECK(difference(6, split_3d, folder / "m", d, run) < 1e-12);
    CHECK(difference(1, feature_column, folder / "m", d, run) < 1e-12);
  }
}

TEST_CASE("the names of a model's parameters are all different, and those of its stages") {
  on_threads(2, [&](const communicator& world) {
    for (const nn::training_options& given : every_variant(options_for("gcn"))) {
      nn::training_options o = given;
      const mesh<host> m(world, {2, 1, 1});
      const auto named = [](const auto& values) {
        std::vector<std::string> names;
        for (const auto& p : values) names.push_back(p.name);
        return names;
      };
      auto model = nn::make_model<double>(m, d, o, row_1d);
      std::vector<std::string> names = named(nn::values_of(model.parameters()));
      if (nn::find_model<double, host>(o).on_stages) {
        o.pipeline.stages = 2;
        nn::pipeline_trainer<double, host> training(m, d, o, row_1d, {1, 1, 1});
        CHECK(named(training.values()) == names);
      }
      names.emplace_back(nn::embedding_name);
      std::ranges::sort(names);
      CHECK(std::ranges::adjacent_find(names) == names.end());
    }
  });
}

TEST_CASE("a learned input is saved in the order of the data, whatever the order of training") {
  const scratch folder;
  std::vector<int> parts;
  for (int v = 0; v < 29; ++v) parts.push_back(v * 7 % 4);
  const io::reordered_dataset sorted = io::reordered(d, parts, 4);
  for (const char* name : {"gcn", "sgc"}) {
    nn::training_options o = options_for(name);
    o.embedding = 5;
    o.block_sizes = sorted.sizes;
    const saved_run run =
        saved_by_trainer(4, {4, 1, 1}, row_1d, folder / "m", sorted.data, o, sorted.old_number);
    CHECK(run.values.back().name == "embedding");
    CHECK(difference(3, grid_2d, folder / "m", d, run) < 1e-12);
    const io::safetensors_file file = io::load_safetensors(folder / "m");
    on_threads(3, [&](const communicator& world) {  // training goes on in another order
      const mesh<host> m(world, {3, 1, 1});
      nn::training_options other = o;
      other.block_sizes.clear();
      nn::trainer<double, host> training(m, sorted.data, other,
                                         nn::make_model<double>(m, sorted.data, other, row_1d));
      nn::load_parameters(file, training.model().parameters());
      nn::load_embedding(file, *training.embedding(), sorted.old_number);
      const std::vector<double> logits =
          nn::in_order_of_vertices(training.outputs(false).logits, d.classes, sorted.old_number);
      if (world.rank() == 0) CHECK(largest_difference(logits, run.outputs.logits) < 1e-12);
    });
  }
}

TEST_CASE("models of mini-batches and of pipelines are saved alike") {
  const scratch folder;
  for (const bool sampled : {false, true})
    for (const auto placement : {sampling::placement::column, sampling::placement::owner}) {
      nn::training_options o = options_for("sage");
      o.embedding = 5;
      o.mini_batch = {.batch = 8, .fanouts = {3, 2}, .placement = placement, .sampled_scores = sampled};
      saved_run run;
      on_mesh({4, 1, 1}, [&](const host_mesh& m) {
        nn::mini_batch_trainer<double, host> training(m, d, o, row_1d);
        saved_run mine = saved(training, m, folder / "m", d, o);
        if (m.rank() == 0) run = std::move(mine);
      });
      CHECK(difference(3, grid_2d, folder / "m", d, run) < 1e-12);
    }
  for (const int stages : {1, 2})
    for (const auto history : {nn::chunk_history::window, nn::chunk_history::halo}) {
      nn::training_options o = options_for("gcnii");
      o.pipeline.stages = stages;
      o.pipeline.chunks = 3;
      o.pipeline.history = history;
      saved_run run;
      on_mesh({4, 1, 1}, [&](const host_mesh& m) {
        nn::pipeline_trainer<double, host> training(m, d, o, row_1d, {4 / stages, 1, 1});
        saved_run mine = saved(training, m, folder / "m", d, o);
        if (m.rank() == 0)
          run = std::move(mine);
        else
          CHECK(mine.outputs.hidden.empty());
      });
      CHECK(difference(3, feature_row, folder / "m", d, run) < 1e-12);
      const io::safetensors_file file = io::load_safetensors(folder / "m");
      on_threads(2, [&](const communicator& world) {  // its stages take what is theirs
        const mesh<host> m(world, {2, 1, 1});
        nn::training_options other = o;
        other.pipeline.stages = 2;
        nn::pipeline_trainer<double, host> training(m, d, other, row_1d, {1, 1, 1});
        nn::load_parameters(file, training.parameters());
        const auto outputs = training.outputs(true);
        if (world.rank() == 0) CHECK(largest_difference(outputs.logits, run.outputs.logits) < 1e-12);
      });
    }
}

TEST_CASE("the metadata says what a model computes") {
  const scratch folder;
  io::dataset d = directed_graph(29);
  nn::training_options o = options_for("gat");
  o.hidden = {6, 3};
  o.alpha = 1.0 / 3;
  o.lambda = 0.1;
  o.epsilon = -2.5e-7;
  o.loops = graph::self_loops::once;
  o.coupling = nn::coupling::decoupled;
  o.raw_features = true;
  o.seed = ~std::uint64_t{0};
  nn::save_model<float>(folder / "m", {{"W", {11, 11}, std::vector<float>(121, 3)}}, o, d,
                        {{"model", "ignored"}, {"more", "text"}});
  const io::safetensors_file file = io::load_safetensors(folder / "m");
  const nn::saved_model found = nn::saved_model_of(file);
  CHECK(found.options.model == "gat");
  CHECK(found.options.hidden == o.hidden);
  CHECK(found.options.layers == 0);
  CHECK(found.options.heads == 2);
  CHECK(found.options.last_heads == 1);
  CHECK(found.options.hops == 3);
  CHECK(found.options.alpha == o.alpha);
  CHECK(found.options.lambda == o.lambda);
  CHECK(found.options.epsilon == o.epsilon);
  CHECK(found.options.loops == graph::self_loops::once);
  CHECK(found.options.coupling == nn::coupling::decoupled);
  CHECK(found.options.aggregation == nn::aggregation::mean);
  CHECK(found.options.raw_features);
  CHECK(found.options.embedding == 0);
  CHECK(found.options.seed == o.seed);
  CHECK(found.features == 13);
  CHECK(found.classes == 5);
  CHECK(found.precision == "f32");
  CHECK(found.data == "directed graph");
  CHECK(file.metadata().at("more") == "text");
  CHECK(file.values<double>("W") == std::vector<double>(121, 3));
}

TEST_CASE("files that do not fit the model are refused") {
  const scratch folder;
  nn::training_options o = options_for("gcn");
  o.embedding = 4;
  values_list values{
      {"W0", {4, 6}, std::vector<double>(24, 1)},          {"b0", {1, 6}, std::vector<double>(6, 1)},
      {"W1", {6, 5}, std::vector<double>(30, 1)},          {"b1", {1, 5}, std::vector<double>(5, 1)},
      {"embedding", {29, 4}, std::vector<double>(116, 1)}, {"b1.m", {1, 5}, std::vector<double>(5, 1)}};
  const auto complaint_of = [&](const values_list& of) {
    nn::save_model(folder / "m", of, o, d);
    return refused(folder, folder / "m", d, o);
  };
  values_list changed = values;
  changed[2].shape = {5, 6};
  CHECK(complaint_of(changed) == "m: tensor W1 is 5 x 6, the model's is 6 x 5");
  changed.erase(changed.begin() + 2);
  CHECK(complaint_of(changed) == "m: has no tensor \"W1\"");
  io::save_safetensors(folder / "m", std::vector{io::tensor_of("W0", {24}, values[0].values)});
  CHECK(refused(folder, folder / "m", d, o) == "m: tensor W0 is 24, the model's is 4 x 6");

  on_threads(1, [&](const communicator& world) {
    nn::predictor<double, host> predicting(mesh<host>(world, {1, 1, 1}), d, o, row_1d);
    nn::assign_values(predicting.parameters(), values, "here");
    CHECK(collect(predicting.parameters().values()) == std::vector<double>(65, 1));
    nn::save_model(folder / "m", values_list(values.begin(), values.end() - 2), o, d);
    CHECK(complaint(folder.dir, [&] {
            nn::load_embedding(io::load_safetensors(folder / "m"), *predicting.embedding());
          }) == "m: has no tensor \"embedding\"");
    values[4].shape = {28, 4};
    values[4].values.resize(112);
    nn::save_model(folder / "m", values, o, d);
    CHECK(complaint(folder.dir, [&] {
            nn::load_embedding(io::load_safetensors(folder / "m"), *predicting.embedding());
          }) == "m: tensor embedding is 28 x 4, the model's is 29 x 4");
    CHECK_THROWS_WITH_AS(nn::assign_rows(*predicting.embedding(), values[4].values),
                         "a matrix of 29 x 4 cannot be made from 112 values of 29 vertices", shape_error);
    CHECK_THROWS_WITH_AS(nn::assign_values(predicting.parameters(), values_list{}, "here"),
                         "the model has a parameter W0, which here lacks", input_error);
    values[0].shape = {6, 4};
    CHECK_THROWS_WITH_AS(nn::assign_values(predicting.parameters(), values, "here"),
                         "the model has a parameter W0 (4 x 6) where here has one of 6 x 4", input_error);
  });
}

TEST_CASE("files without the metadata of a model are refused") {
  const scratch folder;
  const io::tensor_metadata good = nn::metadata_of<double>(options_for("gcn"), directed_graph(29));
  const std::vector<double> values(108, 0);  // 13 x 6, 6 x 5
  const auto complaint_of = [&](const io::tensor_metadata& metadata) {
    io::save_safetensors(folder / "m", std::vector{io::tensor_of("all", {108}, values)}, metadata);
    return complaint(folder.dir, [&] { nn::saved_model_of(io::load_safetensors(folder / "m")); });
  };
  CHECK(complaint_of(good).empty());
  for (const auto& [key, value] : good) {
    io::tensor_metadata changed = good;
    changed.erase(key);
    const std::string without =
        key == "self_loops" ? "" : "m is not a saved model: metadata key \"" + key + "\" is missing";
    CHECK(complaint_of(changed) == without);  // older files have no loops that count once
    if (key == "model" || key == "data") continue;
    changed[key] = "-x";
    CHECK(complaint_of(changed) == "m: its metadata has " + key + " '-x'");
  }
  for (const auto& [key, value] : {std::pair{"hidden", "6,"},
                                   {"hidden", "6,,6"},
                                   {"heads", "0"},
                                   {"heads", "1000000000"},
                                   {"hidden", "9223372036854775807"},
                                   {"seed", "-1"},
                                   {"alpha", "0.5 "},
                                   {"alpha", "nan"},
                                   {"epsilon", "inf"},
                                   {"hops", "1000000000"},
                                   {"classes", "99999999999999999999"}}) {
    io::tensor_metadata changed = good;
    changed[key] = value;
    CHECK(complaint_of(changed) == std::string("m: its metadata has ") + key + " '" + value + "'");
  }
}

TEST_CASE("files that claim more weights than they have are refused before anything is made of them") {
  const scratch folder;
  const std::vector<float> values(1000, 0);
  const auto refused_with = [&](std::string model, std::map<std::string, std::string> changes) {
    io::tensor_metadata metadata = nn::metadata_of<float>(options_for(std::move(model)), d);
    for (const auto& [key, value] : changes) metadata[key] = value;
    io::save_safetensors(folder / "m", std::vector{io::tensor_of("all", {1000}, values)}, metadata);
    return complaint(folder.dir, [&] { nn::saved_model_of(io::load_safetensors(folder / "m")); }) ==
           "m: its tensors are too few or too small for the model that its metadata describes";
  };
  for (const nn::training_options& o : every_variant(options_for("gcn")))
    for (const auto& [key, value] : {std::pair{"features", "1000000000000"},
                                     {"classes", "1000000000000"},
                                     {"embedding", "999999999"},
                                     {"layers", "10000"}})
      CHECK(refused_with(o.model, {{key, value}}) == (o.model != "sgc" || std::string(key) != "layers"));
  for (const char* model : {"gcn", "sage", "gin", "gat", "appnp", "gcnii", "resgcn"})
    CHECK(refused_with(model, {{"hidden", "999999999"}}));
  CHECK(refused_with("gat", {{"heads", "999999999"}}));
  CHECK(refused_with("gat", {{"last_heads", "999999999"}}));
  CHECK(refused_with("gat", {{"heads", "999999999"}, {"coupling", "decoupled"}}));
  CHECK(refused_with("gcnii", {{"hidden", ""}}));
  CHECK_FALSE(refused_with("gcn", {}));
}

TEST_CASE("a model of one layer has no hidden one") {
  nn::training_options o = options_for("gcn");
  o.layers = 1;
  on_threads(1, [&](const communicator& world) {
    nn::predictor<double, host> predicting(mesh<host>(world, {1, 1, 1}), d, o, row_1d);
    CHECK(predicting.outputs(false).logits.size() == 29 * 5);
    CHECK_THROWS_WITH(predicting.outputs(true), "a model of one layer has no hidden layer");
  });
}

}  // namespace test_train_model_file
