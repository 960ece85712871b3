// SPDX-License-Identifier: Apache-2.0
/// A graph convolutional network of the library's verbs, forward only; a tape derives the gradients:
///
///   Z = A relu(A X W0) W1,   loss = mean over the training vertices of -log softmax(Z)
///
/// n vertices, f features, h hidden units, c classes. Change the policy in the first line of main: the losses
/// stay the same, only the communication changes. 14_gcn_by_hand.cpp has the same with a backward.

#include <cmath>
#include <cstdio>

#include <partita/autodiff/elementwise.hpp>
#include <partita/autodiff/losses.hpp>
#include <partita/autodiff/products.hpp>
#include <partita/partita.hpp>

using namespace partita;
using weight = dense<double, replicated, host>;

weight glorot_weight(const mesh<host>& m, global_index in, global_index out) {
  const double bound = std::sqrt(6.0 / static_cast<double>(in + out));
  const std::uint64_t word = random_key{.seed = 1, .stream = static_cast<std::uint64_t>(in)}.word();
  const auto value = [=](auto i, auto j) { return bound * (2 * base::random_uniform(word, i, j) - 1); };
  return generate<replicated, double>(m, {in, out}, value);  // (in, out)
}

constexpr auto descend = [](double w, double dw) { return w - 5 * dw; };

int main() {
  const policy p = grid_2d;  // or row_1d, replicated_1_5d, split_3d, feature_column, feature_row
  const io::dataset club = io::karate_club();
  double right = 0;
  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(p, world.size()));
    const global_index n = club.vertices;
    const auto a = distribute(m, p, {n, n}, graph::gcn_normalized(world, club));  // (n, n)
    const auto x = graph::local_features<double>(m, club, false);                 // (n, f)
    const auto label = [&](auto v) { return club.split[v] == 1 ? club.labels[v] : -1; };
    const algebra::vertex_labels<host> labels(m, a.row_blocking(), label);  // (n)
    weight w0 = glorot_weight(m, club.features, 16);                        // (f, h)
    weight w1 = glorot_weight(m, 16, club.classes);                         // (h, c)
    autodiff::tape<double, host> t(m);
    const auto v0 = t.parameter(w0), v1 = t.parameter(w1);
    const auto hidden = relu(spmm(a, gemm(t.constant(x), v0)));  // (n, h)
    const auto z = t.keep(spmm(a, gemm(hidden, v1)));            // (n, c)
    const auto loss = cross_entropy(z, labels);
    for (int epoch = 1; epoch <= 50; ++epoch) {
      t.forward();
      t.backward(loss);
      zip(w0, t.gradient(v0), w0, descend);
      zip(w1, t.gradient(v1), w1, descend);
      if (world.rank() == 0 && epoch % 10 == 0) std::printf("epoch %3d  loss %.12f\n", epoch, loss.value());
    }
    const double accurate = algebra::accuracy(t.rows(z), labels);
    if (world.rank() == 0) std::printf("training accuracy %.2f\n", right = accurate);
  });
  return right == 1 ? 0 : 1;
}
