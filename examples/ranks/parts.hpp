// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parts of a graph by the name of what finds them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"

/// none, random, degree, rcm, stream, metis, metis-volume and metis-balanced.
const std::vector<std::string>& partitioners();

/// The part of each vertex. Throws partita::error where METIS is needed and this program was built without
/// it.
std::vector<int> parts_by(const std::string& partitioner, partita::global_index vertices,
                          std::span<const partita::io::edge> edges, int parts, std::uint64_t seed);

/// The part, in [0, each), of each vertex within its part of part_of, in [0, parts): those of the graphs that
/// the parts are. Throws as parts_by.
std::vector<int> parts_within(const std::string& partitioner, std::span<const int> part_of, int parts,
                              std::span<const partita::io::edge> edges, int each, std::uint64_t seed);
