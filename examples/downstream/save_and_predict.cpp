// SPDX-License-Identifier: Apache-2.0
/// Train, write parameters and logits as .npy files, read the parameters into a new model on another number
/// of ranks, and predict the same: save_and_predict FOLDER
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <partita/compiled/host.hpp>
#include <partita/io/npy.hpp>
#include <partita/partita.hpp>
using namespace partita;

const io::dataset club = io::karate_club();
const nn::training_options options{.hidden = {8}, .epochs = 60};

/// A trained model's parameters, and the logits (n x C) that it computes.
void train_and_save(const communicator& world, const std::filesystem::path& folder) {
  const mesh<host> m(world, default_mesh(grid_2d, world.size()));
  nn::trainer<double, host> training(m, club, options, nn::make_model<double>(m, club, options, grid_2d));
  training.run();
  const std::vector<double> logits = collect(training.evaluate());  // (n, C)
  if (world.rank() != 0) return;
  io::write_npy(folder / "logits.npy", {club.vertices, club.classes}, logits);
  for (auto& p : training.model().parameters().list())
    io::write_npy(folder / (p.name() + ".npy"), {p.shape().rows, p.shape().cols}, p.value().values());
}

/// How far the logits of a model with these parameters are from those that were saved.
double difference_of_restored(const communicator& world, const std::filesystem::path& folder) {
  const mesh<host> m(world, default_mesh(row_1d, world.size()));
  nn::trainer<double, host> restored(m, club, options, nn::make_model<double>(m, club, options, row_1d));
  for (auto& p : restored.model().parameters().list()) {
    const auto saved = io::read_npy<double>(folder / (p.name() + ".npy"));
    copy(m.queue(), std::span<const double>(saved.values), p.value().values());
  }
  const std::vector<double> logits = collect(restored.evaluate()),
                            saved = io::read_npy<double>(folder / "logits.npy").values;
  double difference = 0;
  for (std::size_t i = 0; i < saved.size(); ++i)
    difference = std::max(difference, std::abs(saved[i] - logits[i]));
  return difference;
}

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: save_and_predict FOLDER"), 2;
  std::filesystem::create_directories(argv[1]);
  threads::run(4, [&](const communicator& world) { train_and_save(world, argv[1]); });
  threads::run(3, [&](const communicator& world) {
    const double difference = difference_of_restored(world, argv[1]);
    if (world.rank() == 0) std::printf("the logits differ by %.1e\n", difference);
    if (difference > 1e-12) throw error("the restored model predicts something else");
  });
}
