// SPDX-License-Identifier: Apache-2.0
// What a layer gets from its builder: predictions, and whether its input needs a gradient.
#include "partita/nn/layer.hpp"

#include "partita/compiled/host.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/linear.hpp"
#include "partita/nn/residual.hpp"
#include "partita/nn/sequential.hpp"
#include "support/layers.hpp"

namespace test_layer {

using namespace test_support;

using operand = algebra::operand<double, host>;
using graph = sparse<double, dynamic_layout, host>;
using layer = nn::layer<double, host>;

/// Z = H W_0 + A H W_1 + ... + A^K H W_K, which defines no prediction; see examples/07.
class powers final : public layer {
 public:
  powers(const graph& a, global_index in, global_index out, int hops, const host_builder& b)
      : layer(b),
        a_(here().product(a, in, hops)),
        at_(here().transposed_product(a, in, here().input() == nn::layer_input::varying ? hops : 0)) {
    for (int k = 0; k <= hops; ++k) terms_.push_back({b.glorot("W", {in, out}), b.rows(in), b.rows(in)});
  }
  void forward(const operand& h, matrix& z, const nn::pass&) override {
    copy(h, terms_[0].power);
    gemm(terms_[0].power, terms_[0].weight.value(), z);
    for (std::size_t k = 1; k < terms_.size(); ++k) {
      (*a_)(terms_[k - 1].power, terms_[k].power);
      gemm(terms_[k].power, terms_[k].weight.value(), z, {.beta = 1});
    }
  }
  void backward(const operand&, const matrix& dz, matrix* dh) override {
    for (std::size_t k = terms_.size(); k-- > 0;) {
      auto& [weight, power, d] = terms_[k];
      const bool last = k + 1 == terms_.size();
      algebra::weight_gradient_part(power, dz, weight.gradient());
      if (dh == nullptr) continue;
      if (!last) (*at_)(terms_[k + 1].d, d);
      gemm(dz, transposed(weight.value()), d, last ? 0. : 1.);
    }
    if (dh != nullptr) copy(terms_[0].d, *dh);
  }
  global_index width() const override { return terms_[0].weight.shape().cols; }

 private:
  struct term {
    nn::parameter<double, host>& weight;
    matrix power, d;
  };
  std::shared_ptr<nn::graph_product<double, host>> a_, at_;
  std::vector<term> terms_;
};

/// Two layers of a kind inside one, which says nothing of either.
class twice final : public layer {
 public:
  twice(const graph& a, global_index width, const host_builder& b)
      : layer(b), inner_(here()), between_(b.rows(width)), gradient_(b.rows(width)) {
    inner_.add(powers(a, width, width, 2, here()));
    first_.emplace(nn::gcn_conv<double, host>(a, width, width, here()));
  }
  void forward(const operand& h, matrix& z, const nn::pass& p) override {
    first_->forward(h, between_, p.alone());
    inner_.forward(between_, z, p.alone());
  }
  void backward(const operand& h, const matrix& dz, matrix* dh) override {
    inner_.backward(between_, dz, &gradient_);
    first_->backward(h, gradient_, dh);
  }
  global_index width() const override { return inner_.width(); }

 private:
  nn::sequential<double, host> inner_;
  std::optional<nn::residual<nn::gcn_conv<double, host>>> first_;
  matrix between_, gradient_;
};

/// Z = A H W, whose members stand in one of two orders: the weight before the product, or behind it.
struct propagated {
  std::shared_ptr<nn::graph_product<double, host>> a, at;  ///< at: null where H needs no gradient

  propagated(const graph& m, global_index width, const host_builder& here) : a(here.product(m, width)) {
    if (here.input() == nn::layer_input::varying) at = here.transposed_product(m, width);
  }
};
struct weight_first {
  nn::parameter<double, host>& weight;
  propagated product;

  weight_first(const graph& a, matrix_shape w, const host_builder& here)
      : weight(here.glorot("W", w)), product(a, w.rows, here) {}
};
struct weight_last {
  propagated product;
  nn::parameter<double, host>& weight;

  weight_last(const graph& a, matrix_shape w, const host_builder& here)
      : product(a, w.rows, here), weight(here.glorot("W", w)) {}
};
template <class Members>
class in_order final : public layer {
 public:
  in_order(const graph& a, global_index in, global_index out, const host_builder& b)
      : layer(b), my_(a, {in, out}, here()), ah_(b.rows(in)), scratch_(b.rows(in)) {}
  void forward(const operand& h, matrix& z, const nn::pass&) override {
    copy(h, scratch_);
    (*my_.product.a)(scratch_, ah_);
    gemm(ah_, my_.weight.value(), z);
  }
  void backward(const operand&, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(ah_, dz, my_.weight.gradient());
    if (!wants(dh)) return;
    gemm(dz, transposed(my_.weight.value()), scratch_);
    (*my_.product.at)(scratch_, *dh);
  }
  global_index width() const override { return my_.weight.shape().cols; }

 private:
  Members my_;
  matrix ah_, scratch_;
};

/// A layer that asks the model's builder, not its own, or its own without having one.
class careless final : public layer {
 public:
  careless(const graph& a, const host_builder& b) : product_(b.product(a, 3)) {}
  explicit careless(const graph& a) : product_(here().product(a, 3)) {}
  void forward(const operand&, matrix&, const nn::pass&) override {}
  void backward(const operand&, const matrix&, matrix*) override {}
  global_index width() const override { return 3; }

 private:
  std::shared_ptr<nn::graph_product<double, host>> product_;
};

constexpr global_index n = 19;

graph graph_on(const host_mesh& m, const partita::policy& policy) {
  return distribute(m, policy, {n, n}, share(sparse_entries({n, n}, 4), m), symmetry::general);
}

TEST_CASE("a layer that defines no prediction receives what is predicted, on every policy") {
  on_each_mesh(std::array{1, 4, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const graph a = graph_on(m, policy);
    rows_matrix h = generate<vertex_rows, double>(m, {n, 3}, field(0));
    const host_builder of_powers = in_the_middle(h), of_residual = in_the_middle(h),
                       of_two = in_the_middle(h);
    check_gradients(of_powers, powers(a, 3, 2, 2, of_powers), h);
    check_gradients(of_residual, nn::residual(powers(a, 3, 3, 1, of_residual)), h);
    check_gradients(of_two, twice(a, 3, of_two), h);
  });
}

TEST_CASE("so does a sequence of them, with outputs stored and computed again") {
  on_each_mesh(std::array{4}, [&](const host_mesh& m, const partita::policy& policy) {
    const graph a = graph_on(m, policy);
    const rows_matrix h = generate<vertex_rows, double>(m, {n, 3}, field(0));
    traffic stored;
    for (const nn::activation_checkpointing how :
         {nn::activation_checkpointing::never, nn::activation_checkpointing::always}) {
      const host_builder b(m, h.row_blocking(), {.seed = 5, .recompute = how});
      nn::sequential net(b);
      for (int l = 0; l < 5; ++l) net.add(powers(a, 3, 3, 2, b)).add(nn::elu{});
      rows_matrix z = b.rows(3), dz = generate<vertex_rows, double>(m, {n, 3}, field(1));
      m.ledger().clear();
      net.forward(h, z, {.training = true});
      same(heard(m), net.predicted_forward(), "forward");
      net.backward(h, dz, nullptr);
      same(heard(m), net.predicted(), "forward and backward");
      if (how == nn::activation_checkpointing::never)
        stored = net.predicted();
      else
        CHECK((net.predicted().words > stored.words) == (stored.words > 0));
    }
  });
}

TEST_CASE("the order of a layer's members does not decide whether its input needs a gradient") {
  const auto m = alone();
  const graph a = graph_on(m, row_1d);
  rows_matrix h = generate<vertex_rows, double>(m, {n, 3}, field(0));
  const auto check = [&]<class Members>(const Members*) {
    const host_builder middle = in_the_middle(h), beginning(m, h.row_blocking(), {.seed = 5});
    check_gradients(middle, in_order<Members>(a, 3, 2, middle), h);
    in_order<Members> first(a, 3, 2, beginning);
    rows_matrix z = beginning.rows(2), dh = beginning.rows(3);
    first.forward(h, z, {});
    first.backward(h, z, nullptr);
    expect_error<error>("constructed for an input that needs no gradient",
                        [&] { first.backward(h, z, &dh); });
  };
  check(static_cast<const weight_first*>(nullptr));
  check(static_cast<const weight_last*>(nullptr));
}

TEST_CASE("a plan from the builder of a model, which no layer would count, is refused") {
  const graph a = graph_on(alone(), row_1d);
  const host_builder b(a);
  expect_error<error>("handed out by the builder of a layer", [&] { careless(a, b); });
  expect_error<error>("must construct its base", [&] { careless{a}; });
}

TEST_CASE("A H of a constant H is computed once, and is neither predicted nor received again") {
  with_mesh({3, 1, 1}, [](const host_mesh& m) {
    const graph a = graph_on(m, row_1d);
    const rows_matrix h = generate<vertex_rows, double>(m, {n, 2}, field(0));
    const host_builder b(m, h.row_blocking());
    nn::gcn_conv<double, host> conv(a, 2, 4, b);
    rows_matrix z = b.rows(4), again = b.rows(4);
    conv.forward(operand(h, true), z, {});
    m.ledger().clear();
    conv.forward(operand(h, true), again, {});
    conv.backward(operand(h, true), z, nullptr);
    same(heard(m), conv.predicted(), "a steady epoch");
    CHECK(conv.predicted().words == 0);
    CHECK(values(z) == values(again));
  });
}

}  // namespace test_layer
