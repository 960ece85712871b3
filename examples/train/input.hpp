// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The data of a command.

#include "command.hpp"
#include "partita/comm/communicator.hpp"

/// The data, without links where these are to be predicted. Every rank of `world` must call; each checks its
/// share. Throws usage_error for options that do not go with the data, and what reading throws.
io::dataset read_input(command& c, const partita::communicator& world);

/// The options of the loss, for the task of the data. Throws usage_error for those that it has no use for.
void take_loss(command& c, const io::dataset& data);
