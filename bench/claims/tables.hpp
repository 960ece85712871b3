// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Tables of the figures that claims are judged by, as pages of docs/ and bench/results/ have them.

#include <string>

namespace bench::claims {

/// What published algorithms receive as policies and options of partita, by ledger and by formula; whether
/// all are equal.
bool print_words();
/// Seconds of communication of CAGNET's algorithms by the number of ranks, as SVG. Throws error.
void write_crossovers(const std::string& file);
/// Bubbles, published volumes and speed-ups, predictions of published times, and what would be faster.
/// Arithmetic only.
void print_pipelines();
/// Rows that mini-batches move under each placement, on a graph of so many vertices with planted communities.
/// Counts only: the ranks are simulated, and nothing is sent but sums.
void print_placements(int vertices);

}  // namespace bench::claims
