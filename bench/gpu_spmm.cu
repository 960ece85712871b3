// SPDX-License-Identifier: Apache-2.0
/// SpMM in f32 on a CUDA device: every cuSPARSE algorithm, with all its preprocessing, against the library's
/// own kernel, which is alone at widths that are no multiple of four, and as it multiplies x stored as bf16.
///
///   gpu_spmm [--scale-down N] [--graphs uniform_reddit,...] [--widths 16,...] [--runs N] [--json FILE]
///
/// Times are medians of single products, between two events. GB/s counts one row of x per nonzero, as if
/// nothing were cached, next to the bandwidth of a copy of 1 GiB / N within the device.

#include <array>
#include <cmath>
#include <cstdio>

#include "partita/local/cuda/tuned_spmm.hpp"
#include "partita/local/cusparse/product.hpp"
#include "partita/train/summary.hpp"
#include "support/device_graphs.hpp"
#include "support/json.hpp"
#include "support/options.hpp"

using namespace partita;

namespace {

using partita::cuda_device;
using device_queue = device_queue<cuda_device>;
using floats = buffer<float, cuda_device>;
using bench::device_operand;

/// The median of `runs` products, after two warm-up runs.
template <class Work>
double milliseconds(partita::on_cuda::stopwatch& watch, int runs, const Work& work) {
  std::vector<double> times;
  for (int run = 0; run < runs + 2; ++run) {
    const double time = static_cast<double>(watch.milliseconds(work));
    if (run >= 2) times.push_back(time);
  }
  return partita::nn::median(std::move(times));
}

/// Bytes per second read and written by a copy of that many within the device.
double copy_bandwidth(const device_queue& q, std::size_t bytes) {
  buffer<std::byte, cuda_device> from(q, bytes), to(q, bytes);
  on_cuda::check_cuda(cudaMemsetAsync(from.data(), 1, bytes, q.stream()), "cudaMemsetAsync");
  partita::on_cuda::stopwatch watch(q);
  const double time = milliseconds(watch, 11, [&] {
    on_cuda::check_cuda(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, q.stream()),
                        "cudaMemcpyAsync");
  });
  return 2e3 * static_cast<double>(bytes) / time;
}

/// One graph and one width: times by contestant, in the order measured.
class point {
 public:
  point(const device_queue& q, const device_operand& a, local_index f, int runs)
      : queue_(q),
        a_(a),
        size_(static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(f)),
        x_memory_(bench::features_on_device(q, size_)),
        y_memory_(q, size_),
        expected_(q, size_),
        x_{x_memory_.data(), a.rows, f, f},
        y_{y_memory_.data(), a.rows, f, f},
        watch_(q),
        runs_(runs) {}

  void measure() {
    const matrix_view<float> expected{expected_.data(), y_.rows, y_.cols, y_.row_stride};
    spmm(queue_, a_.view(), x_, 0, expected);
    if (y_.cols % 4 == 0) {  // as in products, the library has rows of whole 16 bytes only
      time_library("cusparse_default", CUSPARSE_SPMM_ALG_DEFAULT);
      time_library("cusparse_alg1", CUSPARSE_SPMM_CSR_ALG1);
      time_library("cusparse_alg2", CUSPARSE_SPMM_CSR_ALG2);
      time_library("cusparse_alg3", CUSPARSE_SPMM_CSR_ALG3);
    }
    time("own", [&] { spmm(queue_, a_.view(), x_, 0, y_); });
    measure_bfloat16(expected);
  }

  const std::vector<std::pair<std::string, double>>& times() const { return times_; }
  /// Contestants that failed or gave a wrong result.
  int failed() const { return failed_; }
  /// The smallest time of the contestants whose name starts with this prefix; infinite if there are none.
  double best(const std::string& prefix) const {
    double least = INFINITY;
    for (const auto& [name, time] : times_)
      if (name.starts_with(prefix)) least = std::min(least, time);
    return least;
  }

 private:
  /// Of x rounded; what is expected are the products of these floats.
  void measure_bfloat16(const matrix_view<float>& expected) {
    buffer<base::bfloat16, cuda_device> memory(queue_, size_);
    const matrix_view<base::bfloat16> stored{memory.data(), x_.rows, x_.cols, x_.row_stride};
    const matrix_view<const base::bfloat16> x = stored;
    const matrix_view<float> widened{x_memory_.data(), x_.rows, x_.cols, x_.row_stride};
    copy(queue_, x_, stored);
    copy(queue_, x, widened);
    spmm(queue_, a_.view(), x_, 0, expected);
    time("bf16", [&] { spmm_fused(queue_, a_.view(), x, {}, y_); });
  }
  /// A failing contestant does not prevent the others from running.
  template <class Act>
  void attempt(const std::string& name, const Act& act) try {
    act();
  } catch (const partita::error& e) {
    std::fprintf(stderr, "%s at width %d: %s\n", name.c_str(), y_.cols, e.what());
    ++failed_;
  }

  template <class Work>
  void time(const std::string& name, const Work& work) {
    attempt(name, [&] { time_or_throw(name, work); });
  }
  void time_library(const std::string& name, cusparseSpMMAlg_t algorithm) {
    attempt(name, [&] {
      cusparse::product<float> product(queue_, a_.view(), a_.entries, x_, y_, algorithm);
      if (product.prepare(queue_))
        time_or_throw(name, [&] { product.run(a_.values.data(), x_.data, 0, y_.data); });
    });
  }

  template <class Work>
  void time_or_throw(const std::string& name, const Work& work) {
    on_cuda::check_cuda(cudaMemsetAsync(y_.data, 0xff, size_ * sizeof(float), queue_.stream()),
                        "cudaMemsetAsync");
    const double time = milliseconds(watch_, runs_, work);
    const float error = bench::largest_difference(queue_, y_.data, expected_.data(), size_);
    if (!(error < 1e-3f)) throw partita::error("the result is wrong by " + std::to_string(error));
    times_.emplace_back(name, time);
  }

  device_queue queue_;
  const device_operand& a_;
  std::size_t size_;
  floats x_memory_, y_memory_, expected_;
  matrix_view<const float> x_;
  matrix_view<float> y_;
  partita::on_cuda::stopwatch watch_;
  int runs_;
  int failed_ = 0;
  std::vector<std::pair<std::string, double>> times_;
};

/// The measurements of a run so far.
class report {
 public:
  report(std::string file, std::size_t copied, double bandwidth, int runs)
      : file_(std::move(file)), copied_(copied), bandwidth_(bandwidth), runs_(runs) {
    std::printf("a copy of %zu MiB within the device moves %.0f GB/s\n\n", copied_ >> 20, 1e-9 * bandwidth_);
    std::printf("%-16s %4s %9s %9s %7s %7s %9s\n", "graph", "f", "cuSPARSE", "own", "ratio", "GB/s", "bf16");
  }

  void add(const std::string& graph, const device_operand& a, local_index f, const point& p) {
    const double library = p.best("cusparse"), own = p.best("own");
    const double entries = a.entries, rows = a.rows, width = 4.0 * f;
    const double touched = entries * (width + 8) + rows * (width + 4);
    bench::json times = bench::json::object();
    for (const auto& [name, time] : p.times()) times[name] = time;
    points_.push_back({{"graph", graph},
                       {"vertices", a.rows},
                       {"nonzeros", a.entries},
                       {"width", f},
                       {"milliseconds", times},
                       {"own_speedup", library / own},
                       {"own_bytes_per_second", 1e3 * touched / own},
                       {"least_bytes", entries * 8 + rows * (2 * width + 4)}});
    failed_ += p.failed();
    if (std::isfinite(library) && std::isfinite(own)) {
      logarithms_ += std::log(library / own);
      least_ = std::min(least_, library / own);
      ++compared_;
    }
    std::printf("%-16s %4d %9.3f %9.3f %7.2f %7.0f %9.3f\n", graph.c_str(), f, library, own, library / own,
                1e-6 * touched / own, p.best("bf16"));
    std::fflush(stdout);
    write();
  }

  /// Whether every contestant ran and gave the right result.
  bool end() const {
    std::printf("\nspeed over the best of cuSPARSE: at least %.2f, geometric mean %.2f\n", least_, mean());
    return failed_ == 0;
  }

 private:
  double mean() const { return std::exp(logarithms_ / compared_); }

  void write() const {
    bench::write_json(file_, {{"copy_bytes", copied_},
                              {"copy_bytes_per_second", bandwidth_},
                              {"runs", runs_},
                              {"least_speedup", least_},
                              {"geometric_mean_speedup", mean()},
                              {"points", points_}});
  }

  std::string file_;
  std::size_t copied_;
  double bandwidth_;
  int runs_;
  int compared_ = 0, failed_ = 0;
  double logarithms_ = 0, least_ = INFINITY;
  bench::json points_ = bench::json::array();
};

struct command {
  std::vector<std::string> graphs = {"uniform_reddit", "rmat_reddit", "uniform_products", "rmat_products"};
  std::vector<int> widths = {16, 32, 41, 47, 64, 100, 128, 256, 602};  ///< also of real inputs and classes
  int runs = 11, smaller = 1;
  std::string json;
};

bool run(const command& asked) {
  const device_queue q;
  const std::size_t copied =
      std::max(std::size_t{1024} / static_cast<std::size_t>(asked.smaller), std::size_t{1}) << 20;
  report figures(asked.json, copied, copy_bandwidth(q, copied), asked.runs);
  for (const std::string& name : asked.graphs) {
    const auto counts = name.ends_with("reddit") ? bench::reddit_counts() : bench::products_counts();
    std::fprintf(stderr, "making %s ...\n", name.c_str());
    const device_operand a =
        bench::operand_on_device(q, counts.divided_by(asked.smaller), name.starts_with("rmat"));
    for (const local_index f : asked.widths) {
      point p(q, a, f, asked.runs);
      p.measure();
      figures.add(name, a, f, p);
    }
  }
  return figures.end();
}

}  // namespace

int main(int argc, char** argv) try {
  command asked;
  CLI::App app("Sparse times dense in f32 on a CUDA device: cuSPARSE against the own kernel.", "gpu_spmm");
  bench::add_choice(app, "--graphs", asked.graphs, asked.graphs, "a list with commas");
  app.add_option("--widths", asked.widths, "columns of the dense matrix")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->option_text("F[,F...]")
      ->default_str(CLI::detail::join(asked.widths, ","));
  bench::add_number(app, "--runs", asked.runs, 1, 1000, "products of which the median counts");
  bench::add_number(app, "--scale-down", asked.smaller, 1, 1 << 20, "vertices and edges are divided by N");
  app.add_option("--json", asked.json, "write the figures")->option_text("FILE");
  bench::parse(app, argc, argv);
  return run(asked) ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "gpu_spmm: %s\n", e.what());
  return 1;
}
