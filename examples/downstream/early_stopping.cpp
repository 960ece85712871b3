// SPDX-License-Identifier: Apache-2.0
/// An early stop: training ends when the validation loss has not fallen for ten epochs, and the weights of
/// the best epoch are those that are kept.
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/nn/learning_rate.hpp>
#include <partita/partita.hpp>
using namespace partita;

int main() {
  const io::dataset club = io::karate_club();
  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    auto net = nn::make_model<double>(m, club, {.hidden = {16}, .dropout = 0}, row_1d);
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });   // (n, f)
    dense<double, vertex_rows, host> dz(m, {club.vertices, club.classes}), unused(m, dz.shape());  // (n, C)
    const auto labels_of = [&](int part) {
      return algebra::vertex_labels<host>(
          m, dz.row_blocking(), [&](auto v) { return club.split[v] == part ? club.labels[v] : -1; });
    };
    const auto known = labels_of(1), validation = labels_of(2);
    const auto validation_loss = [&] {
      return algebra::cross_entropy(net.forward(x, {}), validation, unused);
    };

    nn::adam<double, host> optimizer(0.05);
    nn::early_stopping stopping(10);
    dense<double, replicated, host> best(m, net.parameters().values().shape());
    std::uint64_t epoch = 0, best_epoch = 0;
    double last = 0;
    while (!stopping.stops() && epoch < 500) {
      algebra::cross_entropy(net.forward(x, {.training = true, .epoch = ++epoch}), known, dz);
      net.backward(dz);
      optimizer.step(net.parameters());
      last = validation_loss();
      if (!stopping.improves(-last)) continue;
      copy(net.parameters().values(), best);
      best_epoch = epoch;
    }
    copy(best, net.parameters().values());
    const double kept = validation_loss();
    if (world.rank() == 0)
      std::printf("epoch %d of %d was best: validation loss %.4f, %.4f at the end\n", int(best_epoch),
                  int(epoch), kept, last);
    if (epoch != best_epoch + 10 || kept != -stopping.best() || !(last > -stopping.best()))
      throw error("the best weights are not back");
  });
}
