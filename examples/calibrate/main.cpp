// SPDX-License-Identifier: Apache-2.0
/// Measures what kernels and messages take on this machine, and writes a file for `train --machine` and
/// programs like it.
/// Exit code 0; 1 when the work fails, with one line on stderr; 2 when the command line is wrong.

#include <chrono>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "../ranks/command_line.hpp"
#include "../ranks/compiled.hpp"
#include "../ranks/cores.hpp"
#include "../ranks/files.hpp"
#include "../ranks/machine_file.hpp"
#include "../ranks/precision.hpp"
#include "../ranks/program.hpp"
#include "kernels.hpp"
#include "links.hpp"
#include "partita/io/whole_file.hpp"

namespace {

struct command {
  std::string file, comm = "threads", precision = "f32";
  double seconds = 60;
  int threads = 1;
  bool quiet = false;
};

command parse_command(int argc, char** argv) {
  CLI::App app("Measures the kernels of training and the messages between ranks on this machine");
  command c;
  app.add_option("file", c.file, "the JSON file to write, for train --machine")
      ->required()
      ->option_text("FILE.json");
  app.add_option(
         "--seconds", c.seconds,
         "time budget for messages and kernels; exceeded only to measure each\nkernel once and to finish "
         "the last measurement")
      ->check(positive)
      ->option_text("N")
      ->capture_default_str();
  app.add_option("--threads", c.threads, "ranks whose kernels run at the same time and share memory")
      ->check(count)
      ->option_text("T")
      ->capture_default_str();
  words(app.add_option("--comm", c.comm, "how ranks communicate; mpi needs mpirun"), {"threads", "mpi"})
      ->capture_default_str();
  words(app.add_option("--precision", c.precision, "floating-point type"), {"f32", "f64"})
      ->capture_default_str();
  app.add_flag("--quiet", c.quiet, "print nothing");
  show_defaults(app);
  parse(app, argc, argv);
  return c;
}

/// Of kernels of one name and width.
struct sum {
  double seconds = 0, work = 0, bytes = 0;
};

/// Rates of products with sparse and with dense operands, by what they depend on most.
void print_rates(const partita::memory::kernel_rates& rates) {
  std::map<std::pair<std::string, double>, sum> by_width;
  rates.for_each([&](const std::string& kernel, const auto& s) {
    if (kernel != "product" && kernel != "gemm") return;
    sum& of = by_width[{kernel, std::exp2(std::round(std::log2(s.call.row_bytes)))}];
    of.seconds += s.seconds * s.times;
    of.work += s.call.work * s.times;
    of.bytes += s.call.bytes * s.times;
  });
  fmt::print("{:<10}{:>12}{:>12}{:>12}\n", "kernel", "row bytes", "GB/s", "GFLOP/s");
  for (const auto& [key, s] : by_width)
    fmt::print("{:<10}{:>12}{:>12.2f}{:>12}\n", key.first, key.second, 1e-9 * s.bytes / s.seconds,
               s.work > 0 ? fmt::format("{:.2f}", 2e-9 * s.work / s.seconds) : "");
}

void print_link(const char* where, const std::optional<partita::emulated::link>& l) {
  if (l)
    fmt::print("{} nodes: latency {:.2f} us, bandwidth {:.3f} GB/s\n", where, 1e6 * l->latency,
               1e-9 * l->bandwidth);
}

/// In `seconds`.
partita::memory::kernel_rates measure(const command& c, double seconds, bool tells) {
  double next = 0;
  const auto tell = [&](double spent, int samples) {
    if (!tells || spent < next) return;
    fmt::print("{:.0f} s: {} measurements\n", c.seconds - seconds + spent, samples);
    std::fflush(stdout);
    next = spent + c.seconds / 10;
  };
  return in_precision(c.precision, [&](auto zero) {
    return calibration::measure_kernels<decltype(zero)>(seconds, c.threads, tell);
  });
}

int calibrate(const command& c, const partita::communicator& world) {
  const bool first = world.rank() == 0, tells = first && !c.quiet;
  described_machine m;
  m.precision = c.precision;
  const auto begin = std::chrono::steady_clock::now();
  const calibration::network n = c.comm == "mpi" ? calibration::measure_network(world)
                                                 : calibration::measure_threads(cores_per_rank(world));
  const std::chrono::duration<double> of_messages = std::chrono::steady_clock::now() - begin;
  m.kernels = std::make_shared<const partita::memory::kernel_rates>(
      measure(c, c.seconds - of_messages.count(), tells));
  if (!first) return 0;
  m.ranks_of_node = n.ranks_of_node;
  m.inside = n.inside.value_or(partita::emulated::link());
  m.has_between = n.between.has_value();
  if (m.has_between) m.between = *n.between;
  if (tells) {
    print_rates(*m.kernels);
    print_link("inside", n.inside);
    print_link("between", n.between);
    if (!n.between)
      fmt::print("{} ranks on this node; messages between nodes were not measured\n", m.ranks_of_node);
  }
  const std::string text = text_of_machine(m);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  partita::io::write_whole_file(c.file, parts);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("calibrate", [&] {
    const command c = parse_command(argc, argv);
    require_precision(c.precision);
    require_writable(c.file);
    return run_ranks({.program = "calibrate", .comm = c.comm}, argc, argv,
                     [&](int, const partita::communicator&) -> rank_body {
                       return [&](const partita::communicator& world) { return calibrate(c, world); };
                     });
  });
}
