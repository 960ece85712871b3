// SPDX-License-Identifier: Apache-2.0
// A model of graph convolutions, and whether its gradients are those of its loss.

#include "partita/algebra/loss.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/gradient_check.hpp"
#include "support/forwarding_transport.hpp"
#include "support/layers.hpp"

namespace test_model {

using namespace test_support;

TEST_CASE("gradients of a gcn on a directed weighted graph agree with finite differences, on every policy") {
  const matrix_shape shape{19, 19};
  const auto entries = sparse_entries(shape, 4);
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape mesh_size) {
    on_threads(4, [&](const communicator& world) {
      const mesh<host> m(world, mesh_size);
      const auto a = distribute(m, policy, shape, share(entries, m));
      const algebra::vertex_labels<host> labels(m, a.row_blocking(),
                                                [](global_index v) { return v % 4 == 0 ? -1 : v % 3; });
      auto model = nn::convolutions<nn::gcn_conv>(a, {5, 4, 3}, {.seed = 11, .dropout = 0.4});
      for (std::size_t i : {1, 3})  // no biases of zero: rows of zeros in A would sit at the kink of relu
        fill(model.parameters().list()[i].value(), 0.1);
      const auto x = generate<vertex_rows, double>(m, {19, 5}, field(0));
      const auto loss = [&](const auto& z, auto& dz) { return algebra::cross_entropy(z, labels, dz); };
      const std::vector<double> before = collect(model.parameters().values());
      CHECK(nn::gradient_error(model, algebra::operand<double, host>(x), loss, 1e-6,
                               {.training = true, .epoch = 3}) < 1e-6);
      CHECK(collect(model.parameters().values()) == before);
      const auto wrong = [&](const auto& z, auto& dz) {
        const double right = loss(z, dz);
        transform(dz, dz, base::scaled<double>{2});
        return right;
      };
      CHECK(nn::gradient_error(model, algebra::operand<double, host>(x), wrong, 1e-6) > 0.1);
    });
  });
}

/// Notes the operations that are started: the elements of an all-reduce, 0 for others.
class noting_transport final : public forwarding_transport {
 public:
  noting_transport(std::shared_ptr<comm::transport> ranks, std::vector<global_index>& seen)
      : forwarding_transport(std::move(ranks)), seen_(&seen) {}

  std::uint64_t start(const comm::collective& op) override {
    seen_->push_back(op.kind == operation::all_reduce ? op.count : 0);
    return inner_->start(op);
  }
  std::shared_ptr<comm::transport> split(int color, int key, std::source_location where) override {
    return std::make_shared<noting_transport>(inner_->split(color, key, where), *seen_);
  }

 private:
  std::vector<global_index>* seen_;
};

TEST_CASE(
    "the gradients of a layer travel while the layers before it go backward, with the bits of one sum") {
  const matrix_shape shape{19, 19};
  const auto entries = sparse_entries(shape, 4);
  on_threads(3, [&](const communicator& world) {
    std::vector<global_index> seen;
    const host_mesh m(world.with_transport(std::make_shared<noting_transport>(world.transport(), seen)),
                      {3, 1, 1});
    const auto a = distribute(m, row_1d, shape, share(entries, m));
    auto model = nn::convolutions<nn::gcn_conv>(a, {5, 6, 128, 64}, {.seed = 11});
    const auto x = generate<vertex_rows, double>(m, {19, 5}, field(0));
    const auto dz = generate<vertex_rows, double>(m, {19, 64}, field(1));
    const algebra::operand<double, host> input(x);
    model.forward(input, {.training = true});
    model.backward(dz);
    model.forward(input, {.training = true});
    seen.clear();
    m.ledger().clear();
    model.backward(dz);
    const traffic all = m.ledger().total();
    const std::vector<double> found = collect(model.parameters().gradients());
    // The last layer has 2^16 bytes: W is 128 x 64, and b has 64. Products follow, of the layers before.
    const auto first = std::ranges::find_if(seen, [](global_index n) { return n > 0; });
    CHECK(std::find(first, seen.end(), 0) != seen.end());
    CHECK(seen.back() > 0);
    std::erase(seen, 0);
    CHECK(seen == std::vector<global_index>{128 * 64 + 64, 5 * 6 + 6 + 6 * 128 + 128});
    CHECK(model.parameters().predicted().messages == 2 * algebra::predicted_sum<double>(m, 1000).messages);
    CHECK(all.words > model.parameters().predicted().words);
    fill(model.parameters().gradients(), 0);
    model.layers().backward(input, dz, nullptr);
    algebra::sum_parts(m, model.parameters().gradients().values());
    CHECK(collect(model.parameters().gradients()) == found);
  });
}

TEST_CASE("a graph stored without its transpose has the same gradients") {
  const matrix_shape shape{19, 19};
  const auto entries = sparse_entries(shape, 4);
  on_each_mesh(std::array{1, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto x = generate<vertex_rows, double>(m, {19, 5}, field(0));
    const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](global_index v) { return v % 3; });
    const auto gradients = [&](symmetry kind) {
      const auto a = distribute(m, policy, shape, share(entries, m), kind);
      auto model = nn::convolutions<nn::gcn_conv>(a, {5, 4, 3}, {.seed = 11});
      rows_matrix dz(m, {19, 3});
      const algebra::operand<double, host> input(x);
      (void)algebra::cross_entropy(model.forward(input, {.training = true}), labels, dz);
      model.backward(dz);
      model.parameters().sum_gradients();
      return collect(model.parameters().gradients());
    };
    CHECK(largest_difference(gradients(symmetry::one_way), gradients(symmetry::general)) < 1e-12);
  });
}

/// Z = H W, whose gradient of W is added to what is there, or forgotten.
class adding_layer final : public nn::layer<double, host> {
 public:
  adding_layer(global_index in, global_index out, bool forgets, const nn::builder<double, host>& b)
      : weight_(b.glorot("W", {in, out})), part_(b.mesh(), {in, out}), forgets_(forgets) {}

  void forward(const algebra::operand<double, host>& h, matrix& z, const nn::pass&) override {
    gemm(h, weight_.value(), z);  // (n, out)
  }
  void backward(const algebra::operand<double, host>& h, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(h, dz, part_);  // (in, out)
    if (!forgets_) zip(weight_.gradient(), part_, weight_.gradient(), base::linear_combination<double>{1, 1});
    if (dh != nullptr) gemm(dz, transposed(weight_.value()), *dh);  // (n, in)
  }
  global_index width() const override { return weight_.shape().cols; }

 private:
  nn::parameter<double, host>& weight_;
  dense<double, replicated, host> part_;
  bool forgets_;
};

TEST_CASE("gradients are zero before a backward: a layer may add to them, and a forgotten one is found") {
  with_mesh({3, 1, 1}, [&](const host_mesh& m) {
    const blocking rows = blocking::even(19, m.shape(), nesting::rows);
    const algebra::vertex_labels<host> labels(m, rows, [](global_index v) { return v % 3; });
    const auto x = generate<vertex_rows, double>(m, {19, 5}, field(0));
    const auto loss = [&](const auto& z, auto& dz) { return algebra::cross_entropy(z, labels, dz); };
    for (const bool forgets : {false, true}) {
      const nn::builder<double, host> b(m, rows, {.seed = 3});
      nn::sequential<double, host> net(b);
      net.add(adding_layer(5, 4, forgets, b)).add(nn::elu{}).add(adding_layer(4, 3, false, b));
      nn::model<double, host> model(b, std::move(net));
      fill(model.parameters().gradients(), 7);  // of an earlier step
      const double off = nn::gradient_error(model, algebra::operand<double, host>(x), loss, 1e-6);
      if (forgets)
        CHECK(off > 0.1);
      else
        CHECK(off < 1e-6);
    }
  });
}

}  // namespace test_model
