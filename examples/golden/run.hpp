// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of `golden` that are translation units of their own.

#include <functional>

#include "../ranks/arrangement.hpp"
#include "case.hpp"

struct golden_command {
  std::string folder;
  std::string policy = "row_1d";
  int ranks = 1;
  std::optional<std::string> mesh;
  std::string comm = "threads";
  std::string device = "cpu";
  std::string precision = "f64";
};

/// Told of each case when it has been compared.
using case_observer = std::function<void(const golden_case&, const golden_errors&)>;

/// Compares every case; every rank must call.
void compare_on_cpu(const partita::communicator& world, const golden_command& c,
                    const std::vector<golden_case>& cases, const case_observer& observe);

/// The same on CUDA devices: see cuda_queue. Throws error when this program was built without CUDA.
void compare_on_cuda(const partita::communicator& world, const golden_command& c,
                     const std::vector<golden_case>& cases, const case_observer& observe);
