// SPDX-License-Identifier: Apache-2.0
/// A schedule of learning rates: a warm-up and half a cosine, and the same bits when a run goes on half-way
/// from what is kept of model, optimiser and schedule.
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/nn/learning_rate.hpp>
#include <partita/partita.hpp>
using namespace partita;

int main() {
  const io::dataset club = io::karate_club();
  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });  // (n, f)
    dense<double, vertex_rows, host> dz(m, {club.vertices, club.classes});                        // (n, C)
    const algebra::vertex_labels<host> known(
        m, dz.row_blocking(), [&](auto v) { return club.split[v] == 1 ? club.labels[v] : -1; });
    struct run {
      nn::model<double, host> net;
      nn::sgd<double, host> optimizer{1.0, 0.9};
      nn::learning_rate rate{0.5,
                             {.curve = nn::rate_curve::cosine, .period = 25, .least = 0.01, .warmup = 5}};
    };
    const auto new_run = [&] {
      return run{nn::make_model<double>(m, club, {.hidden = {8}, .dropout = 0}, row_1d)};
    };
    const auto train = [&](run& r, int epochs) {
      double loss = 0;
      for (; epochs > 0; --epochs) {
        loss = algebra::cross_entropy(r.net.forward(x, {.training = true}), known, dz);
        r.net.backward(dz);
        r.optimizer.set_rate(r.rate.now());
        r.optimizer.step(r.net.parameters());
        r.rate.end_epoch(loss);
      }
      return loss;
    };
    run whole = new_run(), first = new_run(), second = new_run();
    const double start = train(first, 15), loss = train(whole, 30);
    copy(first.net.parameters().values(), second.net.parameters().values());
    copy(first.optimizer.state_of(first.net.parameters()).first_moment,
         second.optimizer.state_of(second.net.parameters()).first_moment);
    second.rate.set(first.rate.get());
    const double resumed = train(second, 15);
    if (world.rank() == 0) std::printf("loss %.4f -> %.4f, resumed %.4f\n", start, loss, resumed);
    if (resumed != loss || loss > start || whole.rate.now() != 0.01) throw error("the schedule was not kept");
  });
}
