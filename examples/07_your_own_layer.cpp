// SPDX-License-Identifier: Apache-2.0
/// A user-defined layer in the library's trainer, forward only: TAGCN (Du et al., arXiv:1710.10370), eq. 3:
///   Z = sum over k = 0..K of A^k H W_k      A (n, n)  H (n, in)  W_k (in, out)
#include <cstdio>

#include <partita/nn/recorded_layer.hpp>
#include <partita/partita.hpp>
using namespace partita;

template <class Builder>
auto tagcn_conv(const sparse<double, dynamic_layout, host>& a, global_index in, global_index out, int hops,
                const Builder& b) {
  return nn::recorded(b, in, [&](const auto& make, auto power) {
    auto z = gemm(power, make.glorot("W", {in, out}));  // H W_0 (n, out)
    for (int k = 1; k <= hops; ++k) {
      power = spmm(a, power);                            // A^k H (n, in)
      z = z + gemm(power, make.glorot("W", {in, out}));  // + A^k H W_k (n, out)
    }
    return z;
  });
}

int main() {
  const io::dataset club = io::karate_club();
  threads::run(4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const global_index n = club.vertices;
    const auto a = distribute(m, grid_2d, {n, n}, graph::gcn_normalized(world, club));  // (n, n)
    const nn::builder<double, host> b(a, {.seed = 1});
    nn::sequential net(b);
    net.add(tagcn_conv(a, club.features, 8, 2, b)).add(nn::relu{}).add(tagcn_conv(a, 8, club.classes, 2, b));
    nn::trainer training(m, club, {.epochs = 100}, nn::model(b, std::move(net)));
    const double off = training.gradient_error(1e-6);  // compared with finite differences
    const nn::training_result r = training.run();
    if (world.rank() == 0)
      std::printf("gradient off by %.1e; loss %.3f -> %.3f, test accuracy %.2f\n", off, r.epochs.front().loss,
                  r.epochs.back().loss, r.epochs.back().test_accuracy);
    if (off > 1e-6 || r.epochs.back().loss > r.epochs.front().loss / 2) throw error("it did not learn");
  });
}
