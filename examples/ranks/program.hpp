// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The main function of the programs: which ranks run, and what an exception says and returns.

#include <functional>
#include <optional>
#include <string>

#include "partita/base/error.hpp"
#include "partita/comm/communicator.hpp"

/// An error that every rank of a job throws, and that the first one says.
struct common_error : partita::error {
  using partita::error::error;
};

/// What the command line says of the ranks.
struct rank_options {
  std::string program;
  std::string comm = "threads";  ///< threads, mpi or nccl
  std::optional<int> ranks = {};
  int least_ranks = 1;  ///< where no number is given
  std::optional<double> timeout = {};
  bool native_collectives = false;  ///< of MPI

  /// Whether ranks are processes of a job, and not threads. Throws usage_error where processes of a job would
  /// each run alone.
  bool over_mpi() const;
};

/// What a rank does; returns its exit code.
using rank_body = std::function<int(const partita::communicator&)>;

/// prepare(ranks, world) says what ranks do: on each of them where they are processes, and once, with a world
/// of one, where they are threads, which share it. Returns the exit code of the first rank. A thread that is
/// stuck ends the process, with a sentence and exit code 1.
int run_ranks(const rank_options& how, int argc, char** argv,
              const std::function<rank_body(int, const partita::communicator&)>& prepare);

/// `run`, its exit code; 1 with a sentence on stderr for an exception and where stdout could not be written,
/// 2 for a usage_error.
int run_program(const std::string& program, const std::function<int()>& run);
