// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a benchmark over ranks is asked for, beside the flags of Google Benchmark.

#include <string>
#include <vector>

namespace bench {

struct command {
  std::string comm = "threads";   ///< or mpi
  std::string device = "cpu";     ///< or cuda
  int ranks = 8;                  ///< of threads; those of the job over MPI
  int scale = 12;                 ///< the made graphs have 2^scale vertices
  bool everything = false;        ///< a filter was given; otherwise the default set runs
  std::vector<std::string> rest;  ///< the program's name and the flags of Google Benchmark
};

}  // namespace bench
