// SPDX-License-Identifier: Apache-2.0
/// A user-defined layer in the library's trainer: TAGCN (Du et al., arXiv:1710.10370), eq. 3:
///   Z = sum over k = 0..K of A^k H W_k      A (n, n)  H (n, in)  W_k (in, out)
#include <cstdio>

#include <partita/partita.hpp>
using namespace partita;

template <class T, class Device>
class tagcn_conv final : public nn::layer<T, Device> {
  using nn::layer<T, Device>::here;  // the builder of this layer

 public:
  using typename nn::layer<T, Device>::matrix;

  tagcn_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out, int hops,
             const nn::builder<T, Device>& b)
      : nn::layer<T, Device>(b),
        a_(here().product(a, in, hops)),
        at_(here().transposed_product(a, in, here().input() == nn::layer_input::varying ? hops : 0)) {
    for (int k = 0; k <= hops; ++k)
      terms_.push_back({here().glorot("W", {in, out}), here().rows(in), here().rows(in)});
  }
  void forward(const algebra::operand<T, Device>& h, matrix& z, const nn::pass&) override {
    copy(h, terms_[0].power);
    gemm(terms_[0].power, terms_[0].weight.value(), z);  // H W_0 (n, out)
    for (std::size_t k = 1; k < terms_.size(); ++k) {
      (*a_)(terms_[k - 1].power, terms_[k].power);                      // A^k H (n, in)
      gemm(terms_[k].power, terms_[k].weight.value(), z, {.beta = 1});  // + A^k H W_k (n, out)
    }
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    for (std::size_t k = terms_.size(); k-- > 0;) {
      auto& [weight, power, d] = terms_[k];
      algebra::weight_gradient_part(power, dz, weight.gradient());  // (A^k H)^T dZ (in, out)
      if (dh == nullptr) continue;
      if (k + 1 < terms_.size()) (*at_)(terms_[k + 1].d, d);                      // A^T d_(k+1) (n, in)
      gemm(dz, transposed(weight.value()), d, T(k + 1 < terms_.size() ? 1 : 0));  // + dZ W_k^T (n, in)
    }
    if (dh != nullptr) copy(terms_[0].d, *dh);
  }
  global_index width() const override { return terms_[0].weight.shape().cols; }

 private:
  struct term {
    nn::parameter<T, Device>& weight;
    matrix power, d;  // A^k H, and d loss / d power
  };
  std::shared_ptr<nn::graph_product<T, Device>> a_, at_;  // shared with other layers of this width
  std::vector<term> terms_;
};

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
