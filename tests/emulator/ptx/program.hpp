// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel decoded: operands are places in a warp's registers, handlers work on all of its lanes.
#include <array>
#include <utility>

#include "module.hpp"

namespace emulator::ptx {

class warp;
struct operation;

inline constexpr unsigned warp_size = 32;
/// Bit l is lane l.
using lane_mask = std::uint32_t;
inline constexpr lane_mask every_lane = 0xffffffff;

/// Does the operation for the lanes of the mask; never called without one.
using handler = void (*)(warp&, const operation&, lane_mask);

/// Where a register begins in the file of a warp, in bytes: 32 values lie side by side, of a predicate a
/// mask.
using slot = std::uint32_t;
/// A predicate that holds for every lane.
inline constexpr slot always = 0;

/// What the scheduler of a warp must know of an operation.
enum class flow : std::uint8_t {
  plain,      ///< the next operation follows
  branch,     ///< to `target`
  table,      ///< to the target that the number in `a` chooses
  exit,       ///< the thread ends
  warp_wide,  ///< lanes of the mask in `e` meet here
  barrier     ///< threads of the block meet here
};

/// What lanes of a warp do where they meet.
enum class meeting : std::uint8_t {
  none,
  synchronize,
  shuffle_up,
  shuffle_down,
  shuffle_butterfly,
  shuffle_index,
  ballot,
  any,
  all,
  uniform,
  match_any,
  match_all,
  reduce,
  count  ///< of a barrier: how many threads say yes
};

struct operation {
  handler run = nullptr;
  flow what = flow::plain;
  meeting meets = meeting::none;
  bool unless = false;     ///< the guard must not hold
  std::uint8_t count = 1;  ///< elements of a vector
  slot guard = always, d = 0, a = 0, b = 0, c = 0, e = 0;
  slot second = 0;  ///< another result, where there is one
  std::array<slot, 4> elements{};
  std::int64_t offset = 0;  ///< added to an address; or a number that the handler knows
  std::uint32_t target =
      0;  ///< of a branch: the number of an operation; of a table: its number; or a handler's own
  const instruction* source = nullptr;
};

/// What differs from thread to thread or launch to launch and is read as a register of so many bytes.
struct special {
  std::string_view name;
  std::size_t bytes;
  bool of_lane;  ///< otherwise the same in a warp
  std::uint64_t (*value)(warp& w, unsigned lane);
};
/// Null where there is none of that name.
const special* find_special(std::string_view name);

struct program {
  struct parameter {
    std::size_t offset, bytes;
  };
  /// `bytes` bytes of `bits` in every lane; of a predicate, whose size is 0, the mask.
  struct constant {
    slot where;
    std::size_t bytes;
    std::uint64_t bits;
  };
  /// The address of a variable of the module, known when the module is on a device.
  struct relocation {
    slot where;
    std::string_view variable;
    std::int64_t offset;
  };

  std::string name;
  std::vector<operation> code;
  std::vector<std::vector<std::uint32_t>> tables;
  std::vector<parameter> parameters;
  std::size_t parameter_bytes = 0, register_bytes = 0;
  std::size_t local_bytes = 0;   ///< of one thread
  std::size_t shared_bytes = 0;  ///< without those that the launch adds, which begin here
  std::vector<constant> constants;
  std::vector<relocation> relocations;
  std::vector<std::pair<slot, const special*>> specials;
  unsigned most_threads = 1024;
  bool may_read_poison = false;  ///< shared memory that was never written; it looks like NaN and -1
};

/// Decodes a kernel; functions that it calls become part of it. Throws refusal, naming the line.
program decode(const module& m, const function& kernel);

}  // namespace emulator::ptx
