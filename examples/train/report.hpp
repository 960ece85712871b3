// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `train` shows and writes. All of it is for one rank only.

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "partita/comm/ledger.hpp"
#include "run.hpp"

/// What is counted in a line such as "reading: 320 of 780 MB, 2 s left".
struct counted_work {
  std::string name;  ///< what is done
  std::string unit;
  double size = 1;  ///< of a unit, in what the observer is told
  std::FILE* to = stdout;
};

/// An observer that prints such lines, the first after a second; `from_all` times as much as it is told is
/// done, since other ranks do as much. After all is done, or when less is than before, what it is told is
/// about other work, such as another matrix, and begins with that call.
partita::comm::progress work_printer(counted_work work, int from_all = 1);

/// How good the parts and the chunks of the vertices are, where they were asked for.
void print_cuts(const command& c, const io::dataset& data);
void print_notes(const command& c, const std::vector<std::string>& notes);

/// They print what `auto` chose from, a line each, and on stderr what is odd about the mesh; what an epoch
/// over far memory will move, in chunks of what sizes; and a line an epoch, at most a few a second, with
/// scores, accuracies, micro-F1 or R^2, and the time that is left.
observers printers(const command& c, io::task task);

/// Some lines for a person: on stderr what a signal has ended.
void print_end(const command& c, int ranks, const outcome& run, const io::dataset& data);

/// As the options of these names have them; nothing for automatic.
inline const char* exchange_name(partita::row_exchange e) {
  constexpr const char* names[] = {"", "full", "needed", "cover"};
  return names[static_cast<std::size_t>(e)];
}
inline const char* stationary_name(partita::stationary s) {
  constexpr const char* names[] = {"", "c", "a"};
  return names[static_cast<std::size_t>(s)];
}

/// In the unit of the options, in which M is 2^20.
constexpr double mebibytes(partita::global_index bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Why `auto` chose this one.
inline const char* why_chosen(const nn::policy_candidate& k) {
  return k.cost.seconds > 0 ? "the fewest seconds" : "the least product of words and bytes";
}

/// The run as JSON (docs/train-output.md names every key): its results, and what reproduces it, options,
/// command line, data with checksums, program, date and host. Throws partita::error when the file cannot be
/// written, or a file of the data cannot be read again.
void write_json(const std::string& path, const command& c, int ranks, const outcome& run,
                const io::dataset& data);
