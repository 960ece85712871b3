// SPDX-License-Identifier: Apache-2.0
/// A loss of your own: the squared hinge of each class against the others, the mean over the counted vertices
/// of max(0, 1 - t z)^2 with t = 1 for a vertex's class and -1 elsewhere, beside finite differences.
#include <algorithm>
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/nn/gradient_check.hpp>
#include <partita/partita.hpp>
using namespace partita;

using rows = dense<double, vertex_rows, host>;

double margin(double z, double t) { return t == 0 ? 0 : std::max(0.0, 1 - t * z); }  // 0: not counted

/// The loss over so many counted vertices, with its gradient (n x C).
double hinge(const rows& z, const rows& t, double counted, rows& dz) {
  zip(z, t, dz, [](double s, double y) { return margin(s, y) * margin(s, y); });
  const double loss = sum(dz) / counted;
  zip(z, t, dz, [=](double s, double y) { return -2 * y * margin(s, y) / counted; });
  return loss;
}

int main() {
  const io::dataset club = io::karate_club();
  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    auto net = nn::make_model<double>(m, club, {.hidden = {8}, .dropout = 0}, row_1d);
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });  // (n, f)
    const auto t = generate<vertex_rows, double>(m, {club.vertices, club.classes}, [&](auto v, auto c) {
      return club.split[v] != 1 ? 0.0 : club.labels[v] == c ? 1.0 : -1.0;
    });                                                        // (n, C)
    rows dz(m, t.shape());                                     // (n, C)
    const double counted = sum(t) / double(2 - club.classes);  // 1 - (C - 1) a vertex
    const auto loss = [&](const rows& z, rows& gradient) { return hinge(z, t, counted, gradient); };
    const double off = nn::gradient_error(net, algebra::operand<double, host>(x), loss, 1e-6);
    nn::adam<double, host> optimizer(0.05);
    double first = 0, last = 0;
    for (std::uint64_t epoch = 1; epoch <= 40; ++epoch) {
      last = loss(net.forward(x, {.training = true, .epoch = epoch}), dz);
      if (epoch == 1) first = last;
      net.backward(dz);
      optimizer.step(net.parameters());
    }
    if (world.rank() == 0) std::printf("loss %.3f -> %.3f, gradients are off by %.0e\n", first, last, off);
    if (last > first / 10 || off > 1e-6) throw error("it did not learn");
  });
}
