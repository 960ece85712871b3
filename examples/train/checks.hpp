// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What of a command does not suit the data, the machine or the other ranks, and what a user may not expect.

#include <string>
#include <vector>

#include "command.hpp"
#include "partita/comm/communicator.hpp"

/// Throws input_error naming what other ranks were given otherwise: options that bear on what is trained, or
/// data. Every rank must call.
void require_same_input(const command& c, const io::dataset& data, const partita::communicator& world);

/// Throws usage_error for more chunks than vertices and larger samples than there are edges, and
/// partita::error for a model that `ranks` ranks, as threads of this process or one in each, cannot have in
/// this machine's memory. Nothing large is taken before. Local.
void require_bounds(const command& c, const io::dataset& data, int ranks);

/// How labels and features are understood, what the edges have that the model does not use, loops, and what
/// mini-batches make of sparse features, in a sentence each. Every rank of `world` must call. What travels:
/// an all-reduce of one element.
std::vector<std::string> notes_on(const partita::communicator& world, const io::dataset& data,
                                  const command& c);

/// Options for rows that travel along row, where on this mesh none do. Local.
std::vector<std::string> notes_on_mesh(const command& c, partita::mesh_shape mesh);

/// What the model makes of so many edges that repeat another one. Local.
std::vector<std::string> notes_on_repeated(partita::global_index repeated, const io::dataset& data,
                                           const command& c);
