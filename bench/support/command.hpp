// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Options of a multi-rank benchmark, in addition to Google Benchmark's flags.

#include <string>
#include <vector>

namespace bench {

struct command {
  std::string comm = "threads";   ///< or mpi
  std::string device = "cpu";     ///< or cuda
  int ranks = 8;                  ///< threads; over MPI the size of the job
  int scale = 12;                 ///< generated graphs have 2^scale vertices
  std::string matrix;             ///< a file whose matrix takes their place; "" is none
  std::vector<int> widths;        ///< columns of dense matrices
  bool everything = false;        ///< a filter was given; otherwise on one mesh of each policy
  std::vector<std::string> rest;  ///< program name and Google Benchmark's flags
};

}  // namespace bench
