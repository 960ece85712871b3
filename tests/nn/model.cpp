// SPDX-License-Identifier: Apache-2.0
// A model of graph convolutions, and whether its gradients are those of its loss.
#include <doctest/doctest.h>

#include "partita/algebra/loss.hpp"
#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/gradient_check.hpp"
#include "support/layers.hpp"

namespace test_model {

using namespace partita;
using namespace test_support;

TEST_CASE("gradients of a gcn on a directed weighted graph agree with finite differences, on every policy") {
  const matrix_shape shape{19, 19};
  const auto entries = sparse_entries(shape, 4);
  for_each_mesh(std::array{4}, [&](auto policy, mesh_shape mesh_size) {
    on_threads(4, [&](const communicator& world) {
      const mesh<host> m(world, mesh_size);
      const auto a = distribute(m, policy, shape, share(entries, m.rank(), m.size()));
      const nn::vertex_labels<host> labels(m, a.row_blocking(),
                                           [](global_index v) { return v % 4 == 0 ? -1 : v % 3; });
      auto model = nn::convolutions<nn::gcn_conv>(a, {5, 4, 3}, {.seed = 11, .dropout = 0.4});
      for (std::size_t i : {1, 3})  // no biases of zero: rows of zeros in A would sit at the kink of relu
        fill(model.parameters().list()[i].value(), 0.1);
      const auto x = generate<vertex_rows, double>(m, {19, 5}, field(0));
      const auto loss = [&](const auto& z, auto& dz) { return nn::cross_entropy(z, labels, dz); };
      const std::vector<double> before = collect(model.parameters().values());
      CHECK(nn::gradient_error(model, operand<double, host>(x), loss, 1e-6, {.training = true, .epoch = 3}) <
            1e-6);
      CHECK(collect(model.parameters().values()) == before);
      const auto wrong = [&](const auto& z, auto& dz) {
        const double right = loss(z, dz);
        transform(dz, dz, scaled<double>{2});
        return right;
      };
      CHECK(nn::gradient_error(model, operand<double, host>(x), wrong, 1e-6) > 0.1);
    });
  });
}

}  // namespace test_model
