// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The balance of words and work over the ranks under a policy.

#include <span>
#include <vector>

#include "partita/graph/propagation_matrices.hpp"
#include "partita/train/models.hpp"
#include "partita/transfer/distribute.hpp"

namespace bench {

using partita::global_index;

/// The largest and the smallest value of a quantity over the ranks.
struct range {
  global_index most = 0;
  global_index least = 0;

  double ratio() const { return static_cast<double>(most) / static_cast<double>(least); }
};

/// Collective.
inline range range_over(const partita::communicator& world, global_index mine) {
  global_index ends[] = {mine, -mine};
  world.all_reduce(std::span<global_index>(ends), partita::reduction::max);
  return {ends[0], -ends[1]};
}

/// For a decoupled gcn under a policy, with two layers of width `data.classes` and 16.
struct balance {
  range words;            ///< received by a rank per epoch, without the sums of loss and gradients
  range multiplications;  ///< nonzeros times width in one product
};

/// Collective over the mesh.
template <class Device>
balance balance_of(const partita::mesh<Device>& m, const partita::policy& p,
                   const partita::io::dataset& data) {
  using namespace partita;
  nn::training_options options;
  options.coupling = nn::coupling::decoupled;
  auto net = nn::make_model<double>(m, data, options, p);
  const auto mine = partita::graph::gcn_normalized(m.world(), data);
  const auto a = distribute(m, p.sparse, {data.vertices, data.vertices}, mine);
  const spmm_plan multiply(a, p.dense, blocking::even(data.classes, m.shape(), nesting::cols));
  return {range_over(m.world(), net.predicted().words - net.parameters().predicted().words),
          range_over(m.world(), multiply.multiplications())};
}

}  // namespace bench
