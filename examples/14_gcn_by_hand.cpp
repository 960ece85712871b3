// SPDX-License-Identifier: Apache-2.0
/// The graph convolutional network of 05_gcn.cpp with its backward written by hand, with the library's
/// operations:
///
///   Z = A relu(A X W0) W1,   loss = mean over the training vertices of -log softmax(Z)
///
/// n vertices, f features, h hidden units, c classes. Change the policy in the first line of main: the losses
/// stay the same, only the communication changes.

#include <cmath>
#include <cstdio>

#include <partita/partita.hpp>

using namespace partita;
using weight = dense<double, replicated, host>;

weight random_weight(const mesh<host>& m, global_index in, global_index out) {
  const double bound = std::sqrt(6.0 / static_cast<double>(in + out));
  const std::uint64_t word = random_key{.seed = 1, .stream = static_cast<std::uint64_t>(in)}.word();
  const auto value = [=](auto i, auto j) { return bound * (2 * base::random_uniform(word, i, j) - 1); };
  return generate<replicated, double>(m, {in, out}, value);  // (in, out)
}

int main() {
  const policy p = grid_2d;  // or row_1d, replicated_1_5d, split_3d, feature_column, feature_row
  const io::dataset club = io::karate_club();
  double first_loss = 0, loss = 0, right = 0;

  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(p, world.size()));
    const global_index n = club.vertices;
    const auto a = distribute(m, p, {n, n}, graph::gcn_normalized(world, club));          // (n, n)
    const auto x = redistribute(graph::local_features<double>(m, club, false), p.dense);  // (n, f)
    const auto label = [&](auto v) { return club.split[v] == 1 ? club.labels[v] : -1; };
    const algebra::vertex_labels<host> labels(m, a.row_blocking(), label);  // (n)
    weight w0 = random_weight(m, club.features, 16);                        // (f, h)
    weight w1 = random_weight(m, 16, club.classes);                         // (h, c)

    for (int epoch = 1; epoch <= 50; ++epoch) {
      auto hidden = spmm(a, gemm(x, w0));  // (n, h)
      transform(hidden, hidden, [](double z) { return z > 0 ? z : 0; });
      const auto z = redistribute<vertex_rows>(spmm(a, gemm(hidden, w1)));  // (n, c)
      dense<double, vertex_rows, host> dz(m, z.shape());                    // (n, c)
      const double mean = algebra::cross_entropy(z, labels, dz);

      const auto dq = spmm(transposed(a), redistribute(dz, p.dense));  // (n, c)
      const auto dw1 = inner(hidden, dq);                              // (h, c)
      auto dhidden = gemm(dq, transposed(w1));                         // (n, h)
      zip(hidden, dhidden, dhidden, [](double out, double d) { return out > 0 ? d : 0; });
      const auto dw0 = inner(x, spmm(transposed(a), dhidden));  // (f, h)

      zip(w0, dw0, w0, [](double w, double dw) { return w - 5 * dw; });
      zip(w1, dw1, w1, [](double w, double dw) { return w - 5 * dw; });
      const double accurate = algebra::accuracy(z, labels);
      if (m.rank() != 0) continue;
      if (epoch == 1) first_loss = mean;
      loss = mean;
      right = accurate;
      if (epoch % 10 == 0 || epoch == 1)
        std::printf("epoch %3d  loss %.12f  training accuracy %.2f\n", epoch, loss, right);
    }
  });
  const bool learned = loss < first_loss / 2 && right == 1;
  std::printf("the network %s under %s\n", learned ? "learned the club" : "did NOT learn the club",
              std::string(p.name).c_str());
  return learned ? 0 : 1;
}
