// SPDX-License-Identifier: Apache-2.0
/// The library's trainer on Zachary's karate club: a model by name, and one composed of layers. The policy
/// changes the communication, not the result. Training comes precompiled in the library partita::compiled;
/// without its header it would be instantiated here.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>

using namespace partita;

/// Graph convolutions over the normalised A (n x n), with a residual in the middle.
nn::model<double, host> my_model(const sparse<double, dynamic_layout, host>& a, const io::dataset& data) {
  const nn::builder<double, host> b(a, {.seed = 1});
  nn::sequential net(b);
  net.add(nn::gcn_conv(a, data.features, 16, b.decaying(5e-4))).add(nn::relu{});
  net.add(nn::residual(nn::gcn_conv(a, 16, 16, b))).add(nn::relu{}).add(nn::dropout(0.5, b));
  net.add(nn::gcn_conv(a, 16, data.classes, b));
  return nn::model(b, std::move(net));
}

/// Prints one line about a run, which is the same on every rank. Returns whether it learned and its traffic
/// was as predicted.
bool report(const communicator& world, const policy& p, const char* model, const nn::training_result& r) {
  const nn::epoch_report &first = r.epochs.front(), &last = r.epochs.back();
  if (world.rank() == 0)
    std::printf("%-15s %-6s %-7s loss %.4f -> %.4f  accuracy: training %.2f, test %.2f  %5d words an epoch\n",
                std::string(p.name).c_str(), to_string(r.mesh).c_str(), model, first.loss, last.loss,
                last.train_accuracy, last.test_accuracy, int(r.words_received.total));
  return last.loss < first.loss / 2 && last.train_accuracy == 1 &&
         r.words_received.total == r.predicted_words_received.total;
}

int main() {
  const io::dataset club = io::karate_club();
  bool right = true;
  threads::run(4, [&](const communicator& world) {
    for (const policy& p : {row_1d, grid_2d, feature_column}) {
      const mesh<host> m(world, default_mesh(p, world.size()));
      const nn::training_options options{.model = "gcn", .epochs = 200, .seed = 1};
      const bool named = report(world, p, "gcn", nn::train_model<double>(m, club, options, p));

      const global_index n = club.vertices;
      const auto a = distribute(m, p, {n, n}, graph::gcn_normalized(world, club));  // (n, n)
      nn::trainer training(m, club, options, my_model(a, club));
      const bool own = report(world, p, "my own", training.run());

      // The trained model's logits for every vertex.
      const std::vector<double> logits = collect(training.evaluate());  // (n, classes)
      if (world.rank() != 0) continue;
      right = right && named && own;
      std::printf("  classes:");
      for (auto row = logits.begin(); row != logits.end(); row += club.classes)
        std::printf(" %d", int(std::max_element(row, row + club.classes) - row));
      std::printf("\n");
    }
  });
  std::printf("the models %s\n",
              right ? "learned, and received what was predicted" : "did NOT do as expected");
  return right ? 0 : 1;
}
