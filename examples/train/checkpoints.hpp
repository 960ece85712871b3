// SPDX-License-Identifier: Apache-2.0
#pragma once
/// --checkpoint, and the signals that end a run between two epochs.

#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/train/training_state.hpp"

/// How a run goes on from the checkpoints that the command names, if any, and where signals ask it to end;
/// for float and double.
template <class T>
partita::nn::continuation<T> continuation_for(const command& c, const partita::io::dataset& data);

/// From now on SIGTERM and SIGINT ask training to end after the epoch; a second one ends the process.
void stop_on_signals();

/// The first signal that has asked this process to end training, or 0.
int ending_signal();

/// Throws input_error naming what other ranks were given otherwise: options that bear on what is trained, or
/// data. Every rank must call.
void require_same_input(const command& c, const partita::io::dataset& data,
                        const partita::communicator& world);

/// Makes the folder of checkpoints, and returns a file in it that nobody has, to see if one can be written.
/// Throws partita::error.
std::string writable_test_in(const std::string& folder);

/// A sentence on stderr about a run that a signal has ended. Only for one rank.
void print_stop(const command& c, const partita::nn::training_result& result);
