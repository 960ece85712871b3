// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The order of the vertices: --partition makes each rank's block of rows a part of the graph.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/io/parts.hpp"
#include "partita/partition/mesh_shape.hpp"

/// What --partition asks for, and how good the parts are when the data has been read.
struct ordering {
  std::string name = "none";  ///< none, random, metis or given
  std::string file;           ///< of `given`
  int parts = 1;              ///< as many as ranks
  partita::io::partition_quality quality;
  double seconds = 0;  ///< to find the parts and to sort the vertices
};

struct command;

/// The words after --partition. Throws usage_error.
ordering parse_ordering(const std::vector<std::string>& words);

/// The words that ask for it again, in one.
std::string in_one_word(const ordering& o);

/// The dataset in the order that c.partition asks for, with as many parts as ranks; their sizes become the
/// block sizes of c.training, and c.partition says how good they are. Every rank of `world` must call: the
/// first finds the parts and sends them, as those of METIS may differ between machines. Where ranks are
/// threads, `world` is of one, and `ranks` share what it returns. Throws partita::input_error for a file
/// that is none of these parts, error when this program was built without METIS.
partita::io::dataset order_vertices(partita::io::dataset data, command& c, int ranks,
                                    const partita::communicator& world);

/// The chunks of a pipeline, c.training.pipeline.chunk_of, by METIS within each rank's block of vertices
/// inside a stage, a mesh of this shape; the data is in the order of order_vertices. Every rank of `world`
/// must call, and the first cuts, as there. Throws partita::error when this program was built without METIS.
void cut_chunks(const partita::io::dataset& data, command& c, partita::mesh_shape inside,
                const partita::communicator& world);

/// Lines for a person.
void print_ordering(const ordering& o);
void print_chunks(const command& c, const partita::io::dataset& data);

/// The parts that METIS finds in a graph. Throws partita::error when this program was built without it.
std::vector<int> metis_parts_of(partita::global_index vertices, std::span<const partita::io::edge> edges,
                                int parts, std::uint64_t seed);
