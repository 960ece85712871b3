// The gcn of every policy on every mesh gives the logits, the loss and every gradient of the golden cases.
#include "support/golden.hpp"

#include <doctest/doctest.h>

#include "partita/nn/gcn.hpp"
#include "partita/nn/loss.hpp"
#include "partita/nn/normalization.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/meshes.hpp"
#include "support/test_matrices.hpp"

using namespace partita;
using namespace test_support;

namespace {

constexpr double tolerance = 1e-10;

double evaluate_loss(const golden_case& c, const dense<double, vertex_rows, host>& logits,
                     dense<double, vertex_rows, host>& gradient) {
  const auto& m = logits.mesh();
  const vertex_labels<host> labels(m, logits.row_blocking(), [&](global_index v) {
    return c.mask[static_cast<std::size_t>(v)] == 0 ? -1
           : c.bce()                                ? 0
                                                    : c.labels[static_cast<std::size_t>(v)];
  });
  if (!c.bce()) return cross_entropy(logits, labels, gradient);
  const auto targets = generate<vertex_rows, double>(m, logits.shape(), [&](global_index v, global_index k) {
    return c.mask[static_cast<std::size_t>(v)] == 0 ? -1
                                                    : c.labels[static_cast<std::size_t>(v * c.classes() + k)];
  });
  return logistic_loss(logits, targets, labels.counted(), gradient);
}

template <class Policy>
void check_case(const golden_case& c, mesh_shape shape) {
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<host> m(world, shape);
    const auto mine = share(c.entries, m.rank(), m.size());
    const auto normalized =
        gcn_normalized<double>(world, c.vertices(), std::span<const triplet<double>>(mine));
    const auto a = distribute<typename Policy::sparse_layout, double>(
        m, {c.vertices(), c.vertices()}, std::span<const triplet<double>>(normalized));
    const auto x =
        generate<vertex_rows, double>(m, {c.x.shape[0], c.x.shape[1]}, [&](global_index i, global_index j) {
          return c.x.values[static_cast<std::size_t>(i * c.x.shape[1] + j)];
        });
    gcn<double, Policy, host> model(a, c.about["dims"].get<std::vector<global_index>>(), 1);
    auto& set = model.parameters();
    for (std::size_t i = 0; i < set.list().size(); ++i) {
      const auto value = c.parameter(set.list()[i].name);
      REQUIRE(value.values.size() == set.list()[i].size());
      std::copy(value.values.begin(), value.values.end(), set.value(i).data);
    }
    const auto& logits = model.forward(x);
    dense<double, vertex_rows, host> gradient(m, logits.shape());
    const double loss = evaluate_loss(c, logits, gradient);
    model.backward(gradient);

    const std::string where = c.name() + ", " + Policy::name + " on " + to_string(shape);
    CHECK_MESSAGE(relative_error(collect(logits), c.logits.values) < tolerance, where, ": logits");
    CHECK_MESSAGE(std::abs(loss - c.loss) < tolerance * c.loss, where, ": loss");
    CHECK(set.list().size() == c.about["params"].size());
    for (std::size_t i = 0; i < set.list().size(); ++i) {
      const std::span<const double> found(set.gradient(i).data, set.list()[i].size());
      CHECK_MESSAGE(relative_error(found, c.gradient(set.list()[i].name).values) < tolerance, where,
                    ": gradient of ", set.list()[i].name);
    }
  });
}

}  // namespace

TEST_CASE("golden cases of gcn, every policy, every mesh of 1 to 27 ranks") {
  for (const golden_case& c : golden_cases("gcn"))
    for_each_mesh(rank_counts,
                  [&](auto policy, mesh_shape shape) { check_case<decltype(policy)>(c, shape); });
}
