// SPDX-License-Identifier: Apache-2.0
/// Train, save the model and its logits, load it into a new one on another number of ranks and under another
/// policy, and predict the same: save_and_predict FOLDER
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <partita/compiled/host.hpp>
#include <partita/io/npy.hpp>
#include <partita/partita.hpp>
#include <partita/train/model_file.hpp>
using namespace partita;

const io::dataset club = io::karate_club();

/// A trained model, and the logits (n x C) that it computes.
void train_and_save(const communicator& world, const std::filesystem::path& folder) {
  const nn::training_options options{.hidden = {8}, .epochs = 60};
  const mesh<host> m(world, default_mesh(grid_2d, world.size()));
  nn::trainer<double, host> training(m, club, options, nn::make_model<double>(m, club, options, grid_2d));
  training.run();
  const std::vector<nn::parameter_values<double>> values = training.values();
  const std::vector<double> logits = training.outputs(false).logits;  // (n, C), on rank 0
  if (world.rank() != 0) return;
  nn::save_model(folder / "gcn.safetensors", values, options, club);
  io::write_npy(folder / "logits.npy", {club.vertices, club.classes}, logits);
}

/// How far the logits of the saved model are from those that were saved; on rank 0.
double difference_of_predicted(const communicator& world, const std::filesystem::path& folder) {
  const io::safetensors_file file = io::load_safetensors(folder / "gcn.safetensors");
  const mesh<host> m(world, default_mesh(row_1d, world.size()));
  nn::predictor<double, host> model(m, club, nn::saved_model_of(file).options, row_1d);
  nn::load_parameters(file, model.parameters());
  const std::vector<double> logits = model.outputs(false).logits,
                            saved = io::read_npy<double>(folder / "logits.npy").values;
  double difference = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    difference = std::max(difference, std::abs(saved[i] - logits[i]));
  return difference;
}

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: save_and_predict FOLDER"), 2;
  std::filesystem::create_directories(argv[1]);
  threads::run(4, [&](const communicator& world) { train_and_save(world, argv[1]); });
  threads::run(3, [&](const communicator& world) {
    const double difference = difference_of_predicted(world, argv[1]);
    if (world.rank() == 0) std::printf("the logits differ by %.1e\n", difference);
    if (difference > 1e-12) throw error("the saved model predicts something else");
  });
}
