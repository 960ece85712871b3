// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs PTX on a card, by the driver's interface.
#include <cstdint>
#include <string>
#include <vector>

namespace opcodes {

/// The kernel `test` of the module with the address of the words, which it may change. Fails the test where
/// the driver cannot.
void run_on_card(const std::string& module, std::vector<std::uint64_t>& words, unsigned blocks,
                 unsigned threads, unsigned shared_bytes);

}  // namespace opcodes
