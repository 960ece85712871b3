// SPDX-License-Identifier: Apache-2.0
#pragma once
/// SpMM, GEMM and redistribution over the ranks of one device type, for every policy, mesh, graph and width.

#include <functional>
#include <set>

#include "command.hpp"
#include "graphs.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "ranks.hpp"

namespace bench {

using namespace partita;

constexpr global_index outputs = 16;  // columns of the weight

inline float feature(global_index i, global_index j) { return static_cast<float>((i + 3 * j) % 101) / 101; }

template <class Device>
void spmm(const mesh<Device>& m, benchmark::State* state, const policy& p, const graph& g, global_index f) {
  const auto a = distribute(m, p.sparse, {g.vertices, g.vertices}, g.share(m.rank(), m.size()));  // (n, n)
  const auto x = generate<float>(m, p.dense, {g.vertices, f}, feature);                           // (n, f)
  dense<float, dynamic_layout, Device> y(m, p.dense, x.shape());                                  // (n, f)
  spmm_plan multiply(a, x);
  const auto work = [&] {
    multiply(x, y);
    m.queue().synchronize();
  };

  const traffic t = count(m.world(), multiply.predicted(), work);
  const int copies = m.shape().size(partition::every_axis - p.sparse.used());
  const auto nonzeros = static_cast<double>(
      nn::summarize(m.world(), static_cast<global_index>(a.local()->nonzeros)).total / copies);
  measure(m.world(), state, work);
  const auto n = static_cast<double>(g.vertices), width = static_cast<double>(f);
  report(state, t, 2 * nonzeros * width, nonzeros * (4 * width + 8) + n * (4 * width + 4));
  if (state == nullptr) return;
  const spmm_options chosen = multiply.options();
  std::string label;
  if (p.sparse.cols.contains(axis::col) && m.shape().col > 1)
    label += chosen.stationary == stationary::c ? "A moves " : "A stays ";
  if (p.sparse.rows.contains(axis::row) && m.shape().row > 1)
    label += chosen.rows == row_exchange::full ? "whole blocks" : "needed rows";
  state->SetLabel(label);
}

template <class Device>
void gemm(const mesh<Device>& m, benchmark::State* state, const policy& p, global_index n, global_index f) {
  const auto x = generate<float>(m, p.dense, {n, f}, feature);           // (n, f)
  const auto w = generate<replicated, float>(m, {f, outputs}, feature);  // (f, g)
  dense<float, dynamic_layout, Device> y(m, p.dense, {n, outputs});      // (n, g)
  gemm_plan multiply(x, w, y);
  const auto work = [&] {
    multiply(x, w, y);
    m.queue().synchronize();
  };

  const traffic t = count(m.world(), multiply.predicted(), work);
  measure(m.world(), state, work);
  const auto rows = static_cast<double>(n), in = static_cast<double>(f), out = static_cast<double>(outputs);
  report(state, t, 2 * rows * in * out, 4 * (rows * in + in * out + rows * out));
  if (state != nullptr) state->SetLabel(to_string(multiply.schedule()));
}

template <class Device>
void redistribute(const mesh<Device>& m, benchmark::State* state, layout from, layout to, global_index n,
                  global_index f) {
  const auto x = generate<float>(m, from, {n, f}, feature);  // (n, f)
  dense<float, dynamic_layout, Device> y(m, to, x.shape());  // (n, f)
  redistribution<float, Device> move(m, x.row_blocking(), x.col_blocking(), from, to);
  const auto work = [&] {
    move(x, y);
    m.queue().synchronize();
  };

  const traffic t = count(m.world(), move.predicted(), work);
  const auto made = nn::summarize(m.world(), static_cast<global_index>(y.values().size())).total;
  measure(m.world(), state, work);
  report(state, t, 0, 8 * static_cast<double>(made));
}

/// Every mesh shape that the policy can use.
inline std::vector<mesh_shape> meshes(const policy& p, int ranks) {
  std::vector<mesh_shape> all;
  for (int row = 1; row <= ranks; ++row)
    for (int col = 1; row * col <= ranks; ++col) {
      const mesh_shape m{row, col, ranks / (row * col)};
      const auto usable = [&](axis a) { return m[a] == 1 || p.used().contains(a); };
      if (m.size() == ranks && usable(axis::row) && usable(axis::col) && usable(axis::depth))
        all.push_back(m);
    }
  return all;
}

/// The benchmarks on one device type. make_queue(world): the queue of a rank; called by every rank.
template <class Device>
class registry {
 public:
  using queue_maker = std::function<device_queue<Device>(const communicator& world)>;
  using mesh_body = std::function<void(const mesh<Device>& m, benchmark::State* state)>;

  registry(launcher& start, const command& asked, queue_maker make_queue)
      : launcher_(start), command_(asked), make_queue_(std::move(make_queue)) {}

  /// body(mesh, state) on every rank.
  void add(const std::string& name, mesh_shape shape, const mesh_body& body) {
    const auto on_rank = [make = make_queue_, shape, body](const communicator& world,
                                                           benchmark::State* state) {
      body(mesh<Device>(world, shape, make(world)), state);
    };
    const auto run = [this, on_rank](benchmark::State& state) {
      launcher_.run(command_.ranks, state, on_rank);
    };
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
  }

  void add_policy(const policy& p, const std::vector<graph>& graphs) {
    for (const mesh_shape shape : meshes(p, command_.ranks))
      if (command_.everything || shape == default_mesh(p, command_.ranks))
        for (const global_index f : command_.widths) add_case(p, shape, f, graphs);
  }

 private:
  void add_case(const policy& p, mesh_shape shape, global_index f, const std::vector<graph>& graphs) {
    const std::string where = "/" + std::string(p.name) + "/" + to_string(shape) + "/";
    for (const graph& g : graphs)
      add("spmm" + where + g.name + "/" + std::to_string(f), shape,
          [=](const auto& m, auto* state) { bench::spmm(m, state, p, g, f); });
    std::set<global_index> sizes;
    for (const graph& g : graphs) sizes.insert(g.vertices);
    for (const global_index n : sizes) {
      const std::string how = where + std::to_string(n) + "/" + std::to_string(f);
      add("gemm" + how, shape, [=](const auto& m, auto* state) { bench::gemm(m, state, p, n, f); });
      add("enter" + how, shape,
          [=](const auto& m, auto* state) { bench::redistribute(m, state, vertex_rows, p.dense, n, f); });
      add("leave" + how, shape,
          [=](const auto& m, auto* state) { bench::redistribute(m, state, p.dense, vertex_rows, n, f); });
    }
  }

  launcher& launcher_;
  const command& command_;
  queue_maker make_queue_;
};

/// The square matrix in a file that convert reads: entry (u, v) is the weight of the edge u -> v. Every
/// process of a job reads it whole. Throws input_error and usage_error, or error if this program was built
/// without what it needs.
graph matrix_file(const std::string& path);

/// Registers every benchmark of every policy.
template <class Device>
void add_policies(registry<Device>& all, const std::vector<graph>& graphs) {
  for (const policy& p : named_policies) all.add_policy(p, graphs);
}

/// Benchmarks on the host, or on CUDA devices (error if this program was built without CUDA). They stay
/// registered as long as the returned object is alive.
std::shared_ptr<void> add_cpu_benchmarks(launcher& start, const command& asked,
                                         const std::vector<graph>& graphs);
std::shared_ptr<void> add_cuda_benchmarks(launcher& start, const command& asked,
                                          const std::vector<graph>& graphs);

}  // namespace bench
