// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The order of the vertices: --partition makes each rank's block of rows a part of the graph.

#include <string>
#include <vector>

#include "command.hpp"
#include "partita/comm/communicator.hpp"

/// The words after --partition. Throws usage_error.
ordering parse_ordering(const std::vector<std::string>& words);

/// The dataset in the order that c.partition asks for, with as many parts as ranks; their sizes become the
/// block sizes of c.training, and c.partition says how good they are. Every rank of `world` must call: the
/// first finds the parts and sends them, as those of METIS may differ between machines. Where ranks are
/// threads, `world` is of one, and `ranks` share what it returns. Throws partita::input_error for a file
/// that is none of these parts, error when this program was built without METIS.
io::dataset order_vertices(io::dataset data, command& c, int ranks, const partita::communicator& world);

/// The chunks of a pipeline, c.training.pipeline.chunk_of, by METIS within each rank's block of vertices
/// inside a stage, a mesh of this shape; the data is in the order of order_vertices. Every rank of `world`
/// must call, and the first cuts, as there. Throws partita::error when this program was built without METIS.
void cut_chunks(const io::dataset& data, command& c, partita::mesh_shape inside,
                const partita::communicator& world);
