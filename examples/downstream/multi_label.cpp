// SPDX-License-Identifier: Apache-2.0
/// Several labels a vertex: the logistic loss, and micro-F1 and areas under ROC curves of members that are
/// held out. Each label is to be in one of two communities.
#include <cstdio>

#include <partita/algebra/class_scores.hpp>
#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>
using namespace partita;

using rows = dense<double, vertex_rows, host>;

/// 2 TP / (2 TP + FP + FN) over all labels, of logits above 0, where t is not -1.
double micro_f1(const rows& z, const rows& t, rows& work) {
  zip(z, t, work, [](double s, double y) { return double(y == 1 && s > 0); });
  const double right = sum(work);
  zip(z, t, work, [](double s, double y) { return double(y >= 0 && (s > 0) != (y == 1)); });
  return 2 * right / (2 * right + sum(work));
}

int main() {
  io::dataset club = io::karate_club();
  const auto label = [of = club.labels](auto v, auto j) { return double((of[v] >> j) % 2 == 0); };
  club.classes = 2;  // as many logits
  threads::run(2, [&](const communicator& world) {
    const mesh<host> m(world, {world.size(), 1, 1});
    auto net = nn::make_model<double>(m, club, {.hidden = {16}, .dropout = 0}, row_1d);
    const auto x = generate<vertex_rows, double>(m, {club.vertices, club.features},
                                                 [](auto v, auto j) { return double(v == j); });  // (n, f)
    const auto known = generate<vertex_rows, double>(
        m, {club.vertices, 2}, [&](auto v, auto j) { return v % 3 == 1 ? -1.0 : label(v, j); });  // (n, 2)
    const auto held_out = generate<vertex_rows, double>(
        m, {club.vertices, 2}, [&](auto v, auto j) { return v % 3 == 1 ? label(v, j) : -1.0; });  // (n, 2)
    rows dz(m, known.shape());                                                                    // (n, 2)
    nn::adam<double, host> optimizer(0.02);
    double loss = 0;
    for (std::uint64_t epoch = 1; epoch <= 60; ++epoch) {
      loss = algebra::logistic_loss(net.forward(x, {.training = true, .epoch = epoch}), known,
                                    club.vertices - club.vertices / 3, dz);
      net.backward(dz);
      optimizer.step(net.parameters());
    }
    const auto& z = net.forward(x, {});
    const double f1 = micro_f1(z, held_out, dz), area = algebra::area_under_roc(z, held_out);
    if (world.rank() == 0)
      std::printf("loss %.3f; held out: micro-F1 %.2f, area under ROC curves %.2f\n", loss, f1, area);
    if (loss > 0.3 || f1 < 0.8 || area < 0.8) throw error("it did not learn");
  });
}
