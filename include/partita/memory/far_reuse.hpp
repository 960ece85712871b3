// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which rows of an operand stay near from chunk to chunk.
///
/// The order of chunks is known, so that Belady's rule can be followed, which reads fewest rows: what makes
/// room is needed again last. While chunk k - 1 is computed with, rows of chunk k arrive, so that those of
/// both stay.
///
/// Sources: Belady, IBM Systems Journal 5(2), 1966; Mattson et al., IBM Systems Journal 9(2), 1970, section
/// on optimal replacement.

#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::local {

/// The chunk that needs a row after the last one.
inline constexpr local_index never = std::numeric_limits<local_index>::max();

/// next[i] = the first chunk after its own that needs row needed[i], or never. `needed`: the rows N_k of all
/// chunks, one after the other, of which chunk k has sizes[k], each row below `rows` once.
inline void find_next_chunks(std::span<const local_index> sizes, std::span<const local_index> needed,
                             local_index rows, std::span<local_index> next) {
  std::vector<local_index> later(static_cast<std::size_t>(rows), never);
  std::size_t i = needed.size();
  for (std::size_t k = sizes.size(); k-- > 0;)
    for (local_index n = sizes[k]; n > 0; --n) {
      --i;
      next[i] = std::exchange(later[static_cast<std::size_t>(needed[i])], static_cast<local_index>(k));
    }
}

/// A table of `places` rows that chunks share, each one with the chunk before. Rows that two chunks next to
/// each other need must fit, or all rows.
class kept_rows {
 public:
  kept_rows(local_index rows, local_index places)
      : makes_room_(places < rows), place_(static_cast<std::size_t>(rows), -1) {
    for (local_index p = places; p > 0; --p) free_.push_back(p - 1);
  }

  /// For the next chunk, the rows that it needs and the chunks that need these next. Overwrites the first
  /// elements: by the rows that are to be read, in the same order, and by their places. Returns how many.
  local_index operator()(std::span<local_index> needed, std::span<local_index> next) {
    if (makes_room_) {
      for (const use& u : before_last_)
        if (of(last_chunk_, u.row) != chunk_ - 1) leaving_[u.next].push_back(u.row);
      leaving_.erase(chunk_);
    }
    before_last_.swap(last_);
    last_.clear();
    for (std::size_t i = 0; i < needed.size(); ++i) {
      last_.push_back({needed[i], next[i]});
      of(last_chunk_, needed[i]) = chunk_;
    }
    std::size_t loaded = 0;
    for (const use& u : last_) {
      if (of(place_, u.row) >= 0) continue;
      needed[loaded] = u.row;
      next[loaded++] = of(place_, u.row) = free_place();
    }
    ++chunk_;
    return static_cast<local_index>(loaded);
  }
  /// Where a row is in the table; -1 if it is not.
  local_index place(local_index row) const { return place_[static_cast<std::size_t>(row)]; }

 private:
  struct use {
    local_index row, next;
  };
  static local_index& of(std::vector<local_index>& list, local_index row) {
    return list[static_cast<std::size_t>(row)];
  }
  local_index free_place() {
    if (free_.empty()) {
      const auto last = std::prev(leaving_.end());
      free_.push_back(std::exchange(of(place_, last->second.back()), -1));
      last->second.pop_back();
      if (last->second.empty()) leaving_.erase(last);
    }
    const local_index place = free_.back();
    free_.pop_back();
    return place;
  }

  bool makes_room_;                                          ///< or all rows have places
  std::vector<local_index> place_;                           ///< of each row, -1 if it is not near
  std::vector<local_index> last_chunk_ = place_;             ///< that has needed each row
  std::vector<local_index> free_;                            ///< places
  std::vector<use> last_, before_last_;                      ///< chunks
  std::map<local_index, std::vector<local_index>> leaving_;  ///< rows that may, by the chunk that needs them
  local_index chunk_ = 0;
};

}  // namespace partita::local
