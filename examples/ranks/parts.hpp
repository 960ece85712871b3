// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parts of a graph by the name of what finds them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"

/// none, random, degree, rcm, metis, metis-volume and metis-balanced.
const std::vector<std::string>& partitioners();

/// The part of each vertex. Throws partita::error where METIS is needed and this program was built without
/// it.
std::vector<int> parts_by(const std::string& partitioner, partita::global_index vertices,
                          std::span<const partita::io::edge> edges, int parts, std::uint64_t seed);
