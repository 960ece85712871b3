// SPDX-License-Identifier: Apache-2.0
#pragma once
/// When ranks computed, what they waited for, and the files that show it.

#include <string>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "run.hpp"

/// Events of a rank that are kept at most: some 100 MB.
inline constexpr std::size_t most_events = std::size_t{1} << 20;

/// The events of all ranks on the clock of the first one, in order of the ranks, on the first; others get
/// none. Every rank must call. What travels: the events as text, and, between ranks on other machines than
/// the first, some messages whose round trips give the difference of the clocks.
std::vector<std::vector<partita::comm::event>> events_of_ranks(const partita::communicator& world);

/// Events as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing show: a process for each rank, with
/// its phases, the layers in them and what it waits for, and beside them what is in flight. Throws
/// partita::error when the file cannot be written.
void write_trace(const std::string& path, const std::vector<std::vector<partita::comm::event>>& events);

/// A page in HTML with plots of losses and accuracies, of words by operation and axis, predicted and measured
/// ones, and of time by phase and rank, and a sentence that says what limits this run. Throws partita::error
/// when the file cannot be written.
void write_page(const std::string& path, const command& c, const outcome& run, const io::dataset& data,
                const std::vector<std::vector<partita::comm::event>>& events);
