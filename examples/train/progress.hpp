// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How far reading and distributing are.

#include <chrono>
#include <string>

#include "partita/comm/ledger.hpp"

/// What is counted in a line such as "reading: 320 of 780 MB, 2 s left".
struct counted_work {
  std::string name;  ///< what is done
  std::string unit;
  double size = 1;  ///< of a unit, in what the observer is told
};

/// When lines are printed.
struct line_times {
  std::chrono::duration<double> first{1};      ///< since the work has begun
  std::chrono::duration<double> between{0.3};  ///< two lines
};

/// An observer that prints such lines; `from_all` times as much as it is told is done, since other ranks do
/// as much. After all is done, or when less is than before, what it is told is about other work, such as
/// another matrix, and begins with that call. Nothing is printed about work that ends before the first line
/// is due. Only for one rank.
partita::comm::progress work_printer(counted_work work, int from_all = 1, line_times when = {});
