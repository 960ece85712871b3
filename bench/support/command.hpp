// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a benchmark over ranks is asked for, beside the flags of Google Benchmark.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "partita/base/error.hpp"

namespace bench {

struct command {
  std::string comm = "threads";   ///< or mpi
  std::string device = "cpu";     ///< or cuda
  int ranks = 8;                  ///< of threads; those of the job over MPI
  int scale = 12;                 ///< the made graphs have 2^scale vertices
  bool everything = false;        ///< a filter was given; otherwise the default set runs
  std::vector<std::string> rest;  ///< the program's name and the flags of Google Benchmark
};

inline int parse_number(const std::string& name, const std::string& text, int low, int high) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    throw partita::error("--" + name + " needs a number from " + std::to_string(low) + " to " +
                         std::to_string(high) + ", not '" + text + "'");
  return value;
}

/// Takes --device, --comm, --ranks and --scale, as `--ranks 4` or `--ranks=4`. Throws error.
inline command parse(int argc, char** argv) {
  command c;
  c.everything = std::getenv("BENCHMARK_FILTER") != nullptr;
  c.rest = {argv[0], "--benchmark_min_time=0.05"};  // a later flag prevails
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help")
      std::puts("partition [--device cpu|cuda] [--comm threads|mpi] [--ranks N] [--scale S] and as every");
    const std::string name = argument.substr(0, argument.find('='));
    if (name != "--device" && name != "--comm" && name != "--ranks" && name != "--scale") {
      c.everything = c.everything || name == "--benchmark_filter";
      c.rest.push_back(argument);
      continue;
    }
    if (name == argument && i + 1 == argc) throw partita::error(name + " needs a value");
    const std::string value = name == argument ? argv[++i] : argument.substr(name.size() + 1);
    if (name == "--ranks") c.ranks = parse_number("ranks", value, 1, 64);
    if (name == "--scale") c.scale = parse_number("scale", value, 4, 24);
    if (name == "--comm") c.comm = value;
    if (name == "--device") c.device = value;
  }
  if (c.comm != "threads" && c.comm != "mpi")
    throw partita::error("--comm is threads or mpi, not '" + c.comm + "'");
  if (c.device != "cpu" && c.device != "cuda")
    throw partita::error("--device is cpu or cuda, not '" + c.device + "'");
  return c;
}

}  // namespace bench
