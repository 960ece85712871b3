// SPDX-License-Identifier: Apache-2.0
// What is not finite ends training, and is neither read nor saved.
#include "partita/train/finite.hpp"

#include "partita/comm/self.hpp"
#include "partita/compiled/host.hpp"
#include "partita/train/mini_batch_trainer.hpp"
#include "partita/train/model_file.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "support/datasets.hpp"
#include "support/ranks.hpp"
#include "support/scratch.hpp"

namespace test_finite {

using namespace partita;
using namespace test_support;

nn::training_options short_run() { return {.model = "gcn", .hidden = {7}, .epochs = 8, .dropout = 0}; }

TEST_CASE("what is not finite ends training in its first epoch, on every rank and in every mode") {
  io::dataset huge = directed_graph();
  std::vector<double> x(static_cast<std::size_t>(huge.vertices * huge.features), 1);
  x[0] = 1e200;  // of the first vertex, which is trained on: squares of gradients overflow, the loss does not
  huge.vertex_features = io::feature_table(huge.vertices, huge.features, x);
  nn::training_options whole = short_run(), batches = whole, stages = whole;
  whole.raw_features = batches.raw_features = stages.raw_features = true;
  batches.mini_batch = {.batch = 30, .fanouts = {3, 3}};
  stages.pipeline.stages = 2;
  for (const nn::training_options& o : {whole, batches, stages})
    expect_error<error>("is not finite in epoch 1", [&] {
      on_threads(2, [&](const communicator& world) {
        const mesh<host> m(world, {2, 1, 1});
        if (o.pipeline.stages > 0)
          (void)nn::train<double>(m, huge, o, row_1d, {1, 1, 1});
        else if (o.mini_batch.batch > 0)
          (void)nn::train<double>(m, huge, o, row_1d);
        else
          (void)nn::train_model<double>(m, huge, o, row_1d);
      });
    });
}

TEST_CASE("features and weights that a precision does not have are named, not read as infinite or nothing") {
  const auto refused = []<class Error>(Error, const char* what, bool raw, auto change) {
    io::dataset d = directed_graph();
    std::vector<double> x(static_cast<std::size_t>(d.vertices * d.features), 1);
    change(d, x);
    d.vertex_features = io::feature_table(d.vertices, d.features, x);
    nn::training_options o = short_run();
    o.raw_features = raw;
    expect_error<Error>(what, [&] {
      (void)nn::train_model<float>(mesh<host>(self::world(), {1, 1, 1}), d, o, row_1d);
    });
  };
  const input_error of_features("");
  refused(of_features, "directed graph: feature 3 of vertex 2 is not a finite number in f32", true,
          [](auto&, auto& x) { x[2 * 13 + 3] = 1e39; });
  refused(of_features, "directed graph: feature 3 of vertex 2 is not a finite number in f32", false,
          [](auto&, auto& x) { x[2 * 13 + 3] = 1e39; });
  refused(error(""), "of a sparse matrix is infinite", false,
          [](auto& d, auto&) { d.edge_weights.edit()[0] = 1e300; });
}

TEST_CASE("weights that are not finite are neither saved nor read, and names are shown as text") {
  const scratch folder;
  const io::dataset d = directed_graph(29);
  using values_list = std::vector<nn::parameter_values<double>>;
  const values_list good{{"W\x1b[31m\n" + std::string(99, 'x'), {1, 2}, {1, 2}}};
  values_list bad = good;
  bad[0].values[1] = std::nan("");
  const std::string shown = "W?[31m?" + std::string(33, 'x') + "... has a value that is not a finite number";
  CHECK(complaint(folder.dir, [&] { nn::save_model(folder / "m", bad, short_run(), d); }) ==
        "m: the parameter " + shown);
  io::save_safetensors(folder / "m", nn::tensors_of(bad));
  CHECK(complaint(folder.dir, [&] {
          nn::values_in<double>(io::load_safetensors(folder / "m"), bad[0].name, {1, 2});
        }) == "m: tensor " + shown);
  bad[0].values[1] = 1e300;
  io::save_safetensors(folder / "m", nn::tensors_of(bad));
  CHECK(complaint(folder.dir, [&] {
          nn::values_in<float>(io::load_safetensors(folder / "m"), bad[0].name, {1, 2});
        }) == "m: tensor " + shown);
  io::tensor_metadata metadata = nn::metadata_of<double>(short_run(), d);
  metadata["heads"] = "\x1b]0;" + std::string(5000, 'x');
  io::save_safetensors(folder / "m", nn::tensors_of(good), metadata);
  CHECK(complaint(folder.dir, [&] { nn::saved_model_of(io::load_safetensors(folder / "m")); }) ==
        "m: its metadata has heads '?]0;" + std::string(36, 'x') + "...'");
  io::dataset latin = d;
  latin.name = "graphe_\xe9t\xe9";
  CHECK(nn::metadata_of<double>(short_run(), latin).at("data") == "graphe_\xef\xbf\xbdt\xef\xbf\xbd");
}

}  // namespace test_finite
