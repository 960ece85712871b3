// SPDX-License-Identifier: Apache-2.0
#pragma once
// From addresses in registers to memory that may be touched: in a living block, aligned, written before it is
// read.
#include "lanes.hpp"

namespace emulator::ptx {

/// How an operation on memory accesses it, in `target`.
constexpr access access_of(const operation& o) { return static_cast<access>(o.target); }
constexpr bool is_write(access a) { return a == access::write || a == access::strong_write; }

inline bool all_written(const std::uint8_t* marks, std::size_t bytes) {
  const auto all = [&]<class T>(T ones) {
    T found;
    std::memcpy(&found, marks, sizeof(T));
    return found == ones;
  };
  if (bytes == 1) return *marks == 1;
  if (bytes == 2) return all(std::uint16_t{0x0101});
  if (bytes == 4) return all(std::uint32_t{0x01010101});
  if (bytes == 8) return all(std::uint64_t{0x0101010101010101});
  return all_written(marks, 8) && all_written(marks + 8, bytes - 8);
}

/// One access of one lane.
struct request {
  unsigned lane;
  std::uint64_t address;
  std::size_t bytes;
  access how;
};

/// The block around an address of space `s` that any space may hold; the address becomes the program's.
window find_window(warp& w, space s, request& r);
/// Whether the kernel is given poison where `found` was never written.
bool may_read_poison(warp& w, const window& found);
/// Throws what is wrong with a request that is not allowed.
[[noreturn]] void fail_request(warp& w, space s, const request& r, const window& found);
/// Tells the detector; throws lane_fault when there is a race.
void note_request(warp& w, const request& r);

/// The memory at an address of space S, for one lane. Throws lane_fault.
template <space S>
[[gnu::always_inline]] inline std::byte* reach(warp& w, unsigned lane, std::uint64_t address,
                                               std::size_t bytes, access how) {
  request r{lane, address, bytes, how};
  const window* found = nullptr;
  if constexpr (S == space::generic)
    for (const window& k : w.block().known)
      if (k.holds(address, bytes)) {
        found = &k;
        break;
      }
  window looked_up;
  if (found == nullptr) {
    if constexpr (S == space::local) {
      looked_up = w.local_window(lane);
      r.address += looked_up.begin;
    } else {
      looked_up = find_window(w, S, r);
    }
    found = &looked_up;
  }
  if (!found->holds(r.address, bytes) || (r.address & (bytes - 1)) != 0) [[unlikely]]
    fail_request(w, S, r, *found);
  if (found->written != nullptr) {
    std::uint8_t* const marks = found->marks_at(r.address);
    if (is_write(how))
      std::memset(marks, 1, bytes);
    else if (!all_written(marks, bytes) && !may_read_poison(w, *found)) [[unlikely]]
      fail_request(w, S, r, *found);
  }
  if (w.what().races != nullptr) [[unlikely]]
    if (S != space::param && S != space::local) note_request(w, r);
  return reinterpret_cast<std::byte*>(r.address + found->alias);
}

/// By the space that an operation names: template handlers for each.
handler for_space(space s, auto f) {
  if (s == space::shared) return f.template operator()<space::shared>();
  if (s == space::local) return f.template operator()<space::local>();
  if (s == space::param) return f.template operator()<space::param>();
  return f.template operator()<space::generic>();
}

}  // namespace emulator::ptx
