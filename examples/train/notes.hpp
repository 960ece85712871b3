// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a user may not expect of a run, in a sentence each.

#include <string>
#include <vector>

#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"

/// Whether the model multiplies with the weights of edges; attention and maxima ask only where edges are.
bool uses_weights(const partita::nn::training_options& options);

/// How labels and features are understood, what the model makes of weights and loops, and what mini-batches
/// make of sparse features. Every rank of `world` must call. What travels: an all-reduce of one element.
std::vector<std::string> notes_on(const partita::communicator& world, const partita::io::dataset& data,
                                  const command& c);
