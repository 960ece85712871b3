/// SpMM, GEMM and redistribution over ranks, for every policy, mesh, graph and width f:
///
///   spmm/POLICY/MESH/GRAPH/f   gemm/POLICY/MESH/n/f   enter/POLICY/MESH/n/f   leave/POLICY/MESH/n/f
///
/// gemm multiplies n x f by f x 16; enter takes n x f from vertex_rows to the policy's dense layout, leave
/// takes it back. Without --benchmark_filter a default set of half a minute runs, on the mesh of each policy
/// that is nearest to a square. Options: --ranks N, --scale S (graphs of 2^S vertices), --comm threads|mpi;
/// with PARTITA_DATA in the environment Cora too.

#include <cstdio>
#include <set>

#include "partita/algebra/gemm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/command.hpp"
#include "support/dataset_graph.hpp"
#include "support/ranks.hpp"
#ifdef PARTITA_WITH_BLAS
#include "partita/local/blas/gemm.hpp"
#endif
#ifdef PARTITA_WITH_MPI
#include "partita/comm/mpi.hpp"
#endif

namespace {

using namespace partita;

constexpr global_index widths[] = {16, 32, 64, 128, 256};
constexpr global_index outputs = 16;  // columns of the weight

mesh<host> make_mesh(const communicator& world, mesh_shape shape) {
#ifdef PARTITA_WITH_BLAS
  return mesh<host>(world, shape, queue<host>(1, blas_gemm()));
#else
  return mesh<host>(world, shape);
#endif
}

float feature(global_index i, global_index j) { return static_cast<float>((i + 3 * j) % 101) / 101; }

template <class Policy>
void spmm(const communicator& world, benchmark::State* state, mesh_shape shape, const bench::graph& g,
          global_index f) {
  using sparse_layout = typename Policy::sparse_layout;
  using dense_layout = typename Policy::dense_layout;
  const mesh<host> m = make_mesh(world, shape);
  const bench::entries mine = g.share(m.rank(), m.size());
  const auto a = distribute<sparse_layout>(m, {g.vertices, g.vertices}, std::span(mine));  // (n, n)
  const auto x = generate<dense_layout, float>(m, {g.vertices, f}, feature);               // (n, f)
  dense<float, dense_layout, host> y(m, x.shape());                                        // (n, f)
  spmm_plan<float, sparse_layout, dense_layout, host> multiply(a, x.col_blocking());
  const auto work = [&] { multiply(x, y); };

  const bench::traffic t = bench::count(world, multiply.predicted(), work);
  const int copies = shape.size(every_axis - sparse_layout::value.used());
  const auto nonzeros =
      static_cast<double>(summarize(world, static_cast<global_index>(a.local()->nonzeros)).total / copies);
  bench::measure(world, state, work);
  const auto n = static_cast<double>(g.vertices), width = static_cast<double>(f);
  bench::report(state, t, 2 * nonzeros * width, nonzeros * (4 * width + 8) + n * (4 * width + 4));
  if (state == nullptr) return;
  const spmm_options chosen = multiply.options();
  std::string label;
  if (sparse_layout::value.cols.contains(axis::col) && shape.col > 1)
    label += chosen.keep == stationary::sparse_moves ? "A moves " : "A stays ";
  if (sparse_layout::value.rows.contains(axis::row) && shape.row > 1)
    label += chosen.rows == exchange::whole ? "whole blocks" : "needed rows";
  state->SetLabel(label);
}

template <class Policy>
void gemm(const communicator& world, benchmark::State* state, mesh_shape shape, global_index n,
          global_index f) {
  using dense_layout = typename Policy::dense_layout;
  const mesh<host> m = make_mesh(world, shape);
  const auto x = generate<dense_layout, float>(m, {n, f}, feature);      // (n, f)
  const auto w = generate<replicated, float>(m, {f, outputs}, feature);  // (f, g)
  dense<float, dense_layout, host> y(m, extent{n, outputs});             // (n, g)
  gemm_plan<float, dense_layout, host> multiply(m, x.row_blocking(), x.col_blocking(), y.col_blocking());
  const auto work = [&] { multiply(x, w, y); };

  const bench::traffic t = bench::count(world, multiply.predicted(), work);
  bench::measure(world, state, work);
  const auto rows = static_cast<double>(n), in = static_cast<double>(f), out = static_cast<double>(outputs);
  bench::report(state, t, 2 * rows * in * out, 4 * (rows * in + in * out + rows * out));
  if (state != nullptr && multiply.form() != gemm_form::automatic)
    state->SetLabel(multiply.form() == gemm_form::partial_sums ? "partial sums" : "full width");
}

template <class From, class To>
void redistribute(const communicator& world, benchmark::State* state, mesh_shape shape, global_index n,
                  global_index f) {
  const mesh<host> m = make_mesh(world, shape);
  const auto x = generate<From, float>(m, {n, f}, feature);  // (n, f) in From
  dense<float, To, host> y(m, x.shape());                    // (n, f) in To
  redistribution<float, host> move(m, x.row_blocking(), x.col_blocking(), From::value, To::value);
  const auto work = [&] { move(x.local(), y.local()); };

  const bench::traffic t = bench::count(world, move.predicted(), work);
  const auto made = summarize(world, static_cast<global_index>(y.values().size())).total;
  bench::measure(world, state, work);
  bench::report(state, t, 0, 8 * static_cast<double>(made));
}

/// Every mesh that the policy can use.
template <class Policy>
std::vector<mesh_shape> meshes(int ranks) {
  std::vector<mesh_shape> all;
  for (int row = 1; row <= ranks; ++row)
    for (int col = 1; row * col <= ranks; ++col) {
      const mesh_shape m{row, col, ranks / (row * col)};
      const auto usable = [&](axis a) { return m[a] == 1 || Policy::used.contains(a); };
      if (m.size() == ranks && usable(axis::row) && usable(axis::col) && usable(axis::depth))
        all.push_back(m);
    }
  return all;
}

class registry {
 public:
  registry(bench::launcher& launcher, const bench::command& command)
      : launcher_(launcher), command_(command) {}

  void add(const std::string& name, const bench::rank_body& body) {
    const auto run = [this, body](benchmark::State& state) { launcher_.run(command_.ranks, state, body); };
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
  }

  template <class Policy>
  void add_policy(const std::vector<bench::graph>& graphs) {
    for (const mesh_shape shape : meshes<Policy>(command_.ranks))
      for (const global_index f : widths)
        if (command_.everything || (shape == default_mesh<Policy>(command_.ranks) && (f == 32 || f == 128)))
          add_case<Policy>(shape, f, graphs);
  }

 private:
  template <class Policy>
  void add_case(mesh_shape shape, global_index f, const std::vector<bench::graph>& graphs) {
    using layout = typename Policy::dense_layout;
    const std::string where = "/" + std::string(Policy::name) + "/" + to_string(shape) + "/";
    for (const bench::graph& g : graphs)
      add("spmm" + where + g.name + "/" + std::to_string(f),
          [=](const auto& world, auto* state) { spmm<Policy>(world, state, shape, g, f); });
    std::set<global_index> sizes;
    for (const bench::graph& g : graphs) sizes.insert(g.vertices);
    for (const global_index n : sizes) {
      const std::string how = where + std::to_string(n) + "/" + std::to_string(f);
      add("gemm" + how, [=](const auto& world, auto* state) { gemm<Policy>(world, state, shape, n, f); });
      add("enter" + how, [=](const auto& world, auto* state) {
        redistribute<vertex_rows, layout>(world, state, shape, n, f);
      });
      add("leave" + how, [=](const auto& world, auto* state) {
        redistribute<layout, vertex_rows>(world, state, shape, n, f);
      });
    }
  }

  bench::launcher& launcher_;
  const bench::command& command_;
};

/// For the ranks of a job other than the first.
struct silent_reporter : benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

int run(bench::command command, bench::launcher launcher, bool first) {
  std::vector<char*> arguments;
  for (std::string& argument : command.rest)
    if (first || argument.rfind("--benchmark_out", 0) != 0) arguments.push_back(argument.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  std::vector<bench::graph> graphs{bench::rmat(command.scale), bench::banded(command.scale)};
  if (const char* data = std::getenv("PARTITA_DATA"))
    if (const auto cora = std::filesystem::path(data) / "cora"; is_directory(cora))
      graphs.push_back(bench::dataset_graph(cora));
  registry all(launcher, command);
  for_each_policy([&](auto policy) { all.add_policy<decltype(policy)>(graphs); });

  silent_reporter silent;
  const std::size_t done =
      first ? benchmark::RunSpecifiedBenchmarks() : benchmark::RunSpecifiedBenchmarks(&silent);
  return done > 0 && launcher.skipped() == 0 ? 0 : 1;
}

int run_mpi([[maybe_unused]] int argc, [[maybe_unused]] char** argv,
            [[maybe_unused]] bench::command command) {
#ifdef PARTITA_WITH_MPI
  return mpi::run(argc, argv, [&](const communicator& world) {
    command.ranks = world.size();
    for (const std::string& argument : command.rest)
      if (argument.rfind("--benchmark_enable_random_interleaving", 0) == 0)
        throw error("random interleaving would give every rank of a job another order of benchmarks");
    return run(command, bench::launcher(world), world.rank() == 0);
  });
#else
  throw error("this program was built without MPI");
#endif
}

}  // namespace

int main(int argc, char** argv) try {
  const bench::command command = bench::parse(argc, argv);
  return command.comm == "mpi" ? run_mpi(argc, argv, command) : run(command, bench::launcher(), true);
} catch (const std::exception& e) {
  std::fprintf(stderr, "partition: %s\n", e.what());
  return 2;
}
