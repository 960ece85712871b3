// SPDX-License-Identifier: Apache-2.0
// Seconds of an epoch by NeutronTP's layouts on a cluster like its own, in virtual time: closed forms of
// training, rehearsed.
#include <memory>

#include "neutrontp.hpp"
#include "partita/comm/emulated.hpp"
#include "runs.hpp"

namespace bench::claims {

namespace {

using partita::feature_column, partita::row_1d;

constexpr int ranks = 16;

/// A kernel in single precision on a T4, as assumed: 5 us and three quarters of what its data sheet says,
/// 320 GB and 4.05e12 multiplications a second. Calls are those of double precision; indices have 4 bytes.
double on_t4(const partita::memory::kernel_call& c) {
  const double indices = c.entries > 0 ? 4 * (c.entries + c.rows) : 0;
  partita::memory::kernel_call single = c;
  single.bytes = indices + (c.bytes - indices) / 2;
  return partita::memory::assumed_rates{5e-6, 240e9, 3e12}(single);
}

/// 15 Gbit/s for numbers of 4 bytes, so twice that for those of 8, and 20 us.
partita::emulated::machine cluster_of_t4() {
  return {.between = {20e-6, 2 * 15e9 / 8},
          .kernels = std::make_shared<const partita::memory::kernel_rates>(on_t4)};
}

/// A graph of the paper, and one like it with 1/scale of the vertices.
struct counts_of {
  const char* name;
  global_index vertices, degree, features, hidden, classes;
  double mixing;  ///< of 64 communities in the order of the vertices; 1: none, a uniform graph

  io::dataset scaled(global_index scale) const {
    const global_index n = vertices / scale;
    return mixing < 1 ? planted_dataset(n, 64, mixing, classes, features, degree)
                      : random_graph(n, degree, features, classes);
  }
};

/// An epoch's seconds, from those of two parts of the graph: what is done for each vertex grows with it,
/// weights and latencies do not.
double seconds_of_epoch(const counts_of& g, const io::dataset& small, const io::dataset& large,
                        nn::coupling coupling, const policy& p, mesh_shape shape) {
  nn::training_options o;
  o.hidden = {g.hidden}, o.coupling = coupling;
  const double a = rehearsed_seconds(small, o, p, shape, cluster_of_t4()),
               b = rehearsed_seconds(large, o, p, shape, cluster_of_t4());
  const auto n = [](const io::dataset& d) { return static_cast<double>(d.vertices); };
  return b + (b - a) * (static_cast<double>(g.vertices) - n(large)) / (n(large) - n(small));
}

}  // namespace

outcome over_data_parallel() {
  parts p;
  std::string found;
  for (const counts_of& g : {counts_of{"Reddit, uniform", 232'965, 493, 602, 256, 41, 1},
                             {"products, cut well", 2'449'029, 25, 100, 64, 47, 0.1},
                             {"products, cut badly", 2'449'029, 25, 100, 64, 47, 0.5}}) {
    const bool dense = g.degree > 100;
    const io::dataset small = g.scaled(dense ? 48 : 96), large = g.scaled(dense ? 32 : 64);
    const auto seconds = [&](nn::coupling c, const policy& by, mesh_shape shape) {
      return seconds_of_epoch(g, small, large, c, by, shape);
    };
    const double base = seconds(nn::coupling::coupled, row_1d, {ranks, 1, 1}),
                 columns = seconds(nn::coupling::coupled, feature_column, {1, ranks, 1}),
                 apart = seconds(nn::coupling::decoupled, feature_column, {1, ranks, 1}),
                 rows_apart = seconds(nn::coupling::decoupled, row_1d, {ranks, 1, 1});
    p.require(base / apart >= 1.29 && base / apart <= 8.72, text("%s: %.2f times", g.name, base / apart));
    found +=
        text("%s%s: %.0f ms, in columns %.2f times as fast, decoupled %.2f, decoupled by rows %.2f",
             found.empty() ? "" : "; ", g.name, 1e3 * base, base / columns, base / apart, base / rows_apart);
  }
  return p.result(found);
}

}  // namespace bench::claims
