// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Consecutive numbers for ids, in the order in which they occur.

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::base {

/// A hash table from ids, which are not negative, to 0, 1, 2, ... with open addressing and linear probing, at
/// most half full. It keeps its memory, and begins with the size that it had grown to when it was last used.
template <class Id>
class numbering {
 public:
  /// Forgets all ids.
  void clear() {
    resize(std::bit_ceil(std::size_t{2} * count_ + smallest));
    count_ = 0;
  }
  /// How many ids have numbers.
  local_index size() const { return static_cast<local_index>(count_); }

  /// The number of id, and whether it is new: then it is the previous size().
  std::pair<local_index, bool> operator()(Id id) {
    slot* at = first_of(id);
    for (; at->id != id; at = next(at))
      if (at->id < 0) {
        *at = {id, size()};
        if (++count_ * 2 > slots_.size()) grow();
        return {size() - 1, true};
      }
    return {at->number, false};
  }
  bool contains(Id id) const {
    const slot* at = slots_.data() + place_of(id);
    while (at->id != id && at->id >= 0) at = next(at);
    return at->id == id;
  }
  /// Announces a question about id.
  void prefetch(Id id) const { __builtin_prefetch(slots_.data() + place_of(id)); }

 private:
  struct slot {
    Id id;
    local_index number;
  };
  static constexpr std::size_t smallest = 64;

  /// Fibonacci hashing. Source: Knuth, The Art of Computer Programming, volume 3, section 6.4.
  std::size_t place_of(Id id) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u >> shift_);
  }
  slot* first_of(Id id) { return slots_.data() + place_of(id); }
  template <class Slots, class Slot>
  static Slot* behind(Slots& slots, Slot* at) {
    return at + 1 == slots.data() + slots.size() ? slots.data() : at + 1;
  }
  const slot* next(const slot* at) const { return behind(slots_, at); }
  slot* next(slot* at) { return behind(slots_, at); }

  /// An empty table of `size`, a power of two.
  void resize(std::size_t size) {
    shift_ = 64 - std::countr_zero(size);
    slots_.assign(size, slot{-1, 0});
  }
  void grow() {
    old_.swap(slots_);
    resize(2 * old_.size());
    for (const slot& moved : old_) {
      if (moved.id < 0) continue;
      slot* at = first_of(moved.id);
      while (at->id >= 0) at = next(at);
      *at = moved;
    }
  }

  std::vector<slot> slots_ = std::vector<slot>(smallest, slot{-1, 0}), old_;
  int shift_ = 64 - (std::bit_width(smallest) - 1);
  std::size_t count_ = 0;
};

}  // namespace partita::base
