// SPDX-License-Identifier: Apache-2.0
// Messages and scores of edges on a device: what the host computes, and its gradients.

#include "partita/algebra/message_scores.hpp"
#include "partita/algebra/messages.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_device_messages {

using namespace test_support;
using partita::algebra::message_reduction;

/// p[0] leaky_relu(u + v + e) + p[1] u v / (1 + exp(e)).
struct attentive {
  static constexpr int parameters = 2;
  template <class X, class P>
  constexpr X operator()(X u, X v, X e, const P& p) const {
    using std::exp;
    const X x = u + v + e;
    return p[0] * (x > X(0) ? x : X(0.2) * x) + p[1] * u * v / (X(1) + exp(e));
  }
};
struct product_with_edge {
  template <class X>
  constexpr X operator()(X u, X e) const {
    return u * e;
  }
};

/// Values that follow from where they are in the memory of the rank.
template <class Device>
edge_matrix<double, Device> edges_of(const sparse<double, dynamic_layout, Device>& a, local_index heads,
                                     double scale) {
  edge_matrix<double, Device> e(a, heads);
  std::vector<double> values(e.values().size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * std::cos(0.7 * static_cast<double>(i));
  copy(a.mesh().queue(), std::span<const double>(values), e.values());
  return e;
}
template <class Device>
std::vector<double> values_of(const edge_matrix<double, Device>& e) {
  std::vector<double> values(e.values().size());
  copy(e.mesh().queue(), std::span<const double>(e.values()), std::span<double>(values));
  return values;
}

/// Z, dX, dT, dP and dE of a rank, or S in the place of Z where there is no reduction.
template <class Device, class F>
std::vector<std::vector<double>> results_on(const mesh<Device>& m, const policy& p, const F& f,
                                            local_index heads, const message_reduction* how) {
  const auto a = distribute(m, p.sparse, {17, 17}, share(sparse_entries({17, 17}, 4), m));
  const auto x = generate<double>(m, p.dense, {17, 6}, field(0)),
             y = generate<double>(m, p.dense, {17, 6}, field(2)),
             dz = generate<double>(m, p.dense, {17, 6}, field(1));
  const auto learned =
      generate<replicated, double>(m, {static_cast<global_index>(local::parameter_count<F>()), 3}, field(3));
  auto z = copy(x), dx = copy(x), dy = copy(y);
  auto dp = copy(learned);
  const auto e = edges_of<Device>(a, heads, 1);
  auto de = edges_of<Device>(a, heads, 2);
  std::vector<double> first;
  if (how != nullptr) {
    algebra::message_plan plan(a, x, f, {.heads = heads, .reduction = *how});
    plan.forward(x, y, &e, z, &learned);
    plan.backward(x, y, &e, dz, dx, dy, &de, &learned, &dp);
    first = collect(z);
  } else {
    algebra::message_scores_plan plan(a, x, f, {.heads = 3, .edge_columns = heads});
    auto s = edges_of<Device>(a, 3, 5);
    const auto ds = edges_of<Device>(a, 3, 3);
    plan.forward(x, y, &e, s, &learned);
    plan.backward(x, y, &e, ds, dx, dy, &de, &learned, &dp);
    first = values_of(s);
  }
  return {first, collect(dx), collect(dy), collect(dp), values_of(de)};
}

template <class F>
void expect_those_of_the_host(const F& f, local_index heads, const message_reduction* how) {
  for_each_mesh(std::array{1, 6}, [&](const policy& p, mesh_shape shape) {
    on_threads(shape.size(), [&](const communicator& world) {
      const auto expected = results_on(host_mesh(world, shape), p, f, heads, how),
                 found = results_on(mesh<cuda_device>(world, shape), p, f, heads, how);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK_MESSAGE(largest_difference(found[k], expected[k]) < 1e-12, "result ", k, " on ",
                      std::string(p.name), ", ", to_string(shape));
    });
  });
}

TEST_CASE("messages on a device, their gradients, and scores of edges are those of the host") {
  constexpr auto sum = message_reduction::sum, mean = message_reduction::mean, max = message_reduction::max,
                 min = message_reduction::min;
  expect_those_of_the_host(attentive(), 1, &sum);
  expect_those_of_the_host(attentive(), 6, &max);
  expect_those_of_the_host(attentive(), 3, nullptr);
  expect_those_of_the_host(product_with_edge(), 3, &mean);
  expect_those_of_the_host(product_with_edge(), 2, &min);
}

}  // namespace test_device_messages
