// SPDX-License-Identifier: Apache-2.0
/// A training loop of your own over a whole graph: a loss, a schedule of learning rates and an early stop
/// that are not the trainer's. The loss is the mean square of Z - T, where T is 1 for a vertex's class and 0
/// elsewhere.
#include <cstdio>

#include <partita/nn/learning_rate.hpp>
#include <partita/partita.hpp>
using namespace partita;

int main() {
  const io::dataset club = io::karate_club();
  threads::run(4, [&](const communicator& world) {
    const global_index n = club.vertices, f = club.features, classes = club.classes;
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const auto a = distribute(m, grid_2d, {n, n}, graph::gcn_normalized(world, club));  // (n/pr, n/pc)
    auto net = nn::convolutions<nn::gcn_conv>(a, {f, 16, classes}, {.seed = 1, .dropout = 0.2});
    const auto x =
        generate<vertex_rows, double>(m, {n, f}, [](auto v, auto j) { return double(v == j); });  // (n/P, f)
    const algebra::operand<double, host> features(x, true);  // what depends on it alone is computed once
    const auto part_of = [&](auto v) { return io::split_part(club.split[v]); };
    const auto target = [&](auto v, auto c) {
      return part_of(v) == io::split_part::train ? double(club.labels[v] == c) : -1;  // -1: not counted
    };
    const auto t = generate<vertex_rows, double>(m, {n, classes}, target);  // (n/P, classes)
    const algebra::vertex_labels<host> validation(m, t.row_blocking(), [&](auto v) {
      return part_of(v) == io::split_part::validation ? club.labels[v] : -1;
    });
    dense<double, vertex_rows, host> dz(m, t.shape());  // (n/P, classes)

    nn::adamw<double, host> optimizer;
    nn::learning_rate rate(0.05, {.curve = nn::rate_curve::cosine, .period = 100, .warmup = 5});
    nn::early_stopping stopping(20);
    dense<double, replicated, host> best(m,
                                         net.parameters().values().shape());  // the weights of the best epoch
    double first = 0, loss = 0;
    for (std::uint64_t epoch = 1; !stopping.stops() && epoch <= 100; ++epoch) {
      zip(net.forward(features, {.training = true, .epoch = epoch}), t, dz,
          [](auto z, auto t) { return t < 0 ? 0 : z - t; });
      loss = dot(dz, dz) / double(n);
      transform(dz, dz, base::scaled<double>{2.0 / double(n)});
      net.backward(dz);
      nn::clip_gradients(net.parameters(), 1.0);
      optimizer.set_rate(rate.now());
      optimizer.step(net.parameters());
      rate.end_epoch(loss);
      if (stopping.improves(algebra::accuracy(net.forward(features, {}), validation)))
        copy(net.parameters().values(), best);
      if (epoch == 1) first = loss;
    }
    copy(best, net.parameters().values());
    if (world.rank() == 0)
      std::printf("loss %.4f -> %.4f; best validation accuracy %.2f\n", first, loss, stopping.best());
    if (loss > first || stopping.best() < 0.5) throw error("it did not learn");
  });
}
