// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the emulator asks of the memory that kernels reach by address.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace emulator::ptx {

/// What a kernel does wrong when it runs.
struct fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory that may be read and written: one block. A byte of `written` belongs to each of its bytes and is 1
/// when something was stored there; where there is none, everything counts as written. The emulator finds it
/// `alias` bytes from where the program does.
struct window {
  std::uint64_t begin = 0, end = 0;
  std::uint8_t* written = nullptr;
  std::uint64_t alias = 0;

  bool holds(std::uint64_t address, std::size_t bytes) const {
    return address - begin < end - begin && bytes <= end - address;
  }
  std::uint8_t* marks_at(std::uint64_t address) const { return written + (address - begin); }
};

class address_space {
 public:
  virtual ~address_space() = default;
  /// The block around an address, empty where there is none. Called by several threads at once.
  virtual window find(std::uint64_t address) const = 0;
  /// Where the address lies, for a fault: "4 bytes behind a block of 400 bytes".
  virtual std::string describe(std::uint64_t address) const = 0;
  /// Of a variable of the module that is loaded.
  virtual std::uint64_t address_of(const std::string& variable) const = 0;
};

/// Who accesses memory: a thread of a grid, and how often its block and its warp have met before.
struct accessor {
  std::uint64_t block = 0;
  std::uint32_t thread = 0;
  std::uint64_t block_phase = 0, warp_phase = 0;
  bool shared = false;  ///< the memory is the block's own, and no other block's
};

/// What is atomic, volatile, or says how it is ordered, races with nothing of its kind.
enum class access : std::uint8_t { read, write, strong_read, strong_write };

/// What an access races with, "a write" say, and whose that is where it is of the same launch.
struct race {
  std::string with;
  std::optional<accessor> thread;
};

/// Is told of every access when races are looked for.
class race_detector {
 public:
  virtual ~race_detector() = default;
  virtual std::optional<race> note(std::uint64_t address, std::size_t bytes, access how,
                                   const accessor& who) = 0;
};

}  // namespace emulator::ptx
