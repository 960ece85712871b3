// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How many neighbours a layer draws.

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace partita::sampling {

/// In-neighbours that are drawn for a target in a layer, -1 for all of them: one number for every relation,
/// or one for each, of which 0 takes none of that relation's.
struct fanout {
  std::vector<local_index> numbers;

  fanout() = default;
  fanout(local_index of_all) : numbers{of_all} {}
  fanout(std::initializer_list<local_index> of_each) : numbers(of_each) {}

  /// That of a relation.
  local_index operator[](std::size_t relation) const { return numbers[numbers.size() == 1 ? 0 : relation]; }
  /// Throws shape_error naming a number less than -1, unless one is not 0, and for another number of them
  /// than 1 and that of the relations.
  void require(local_index relations) const {
    if (const auto wrong = std::ranges::find_if(numbers, [](local_index k) { return k < -1; });
        wrong != numbers.end() || std::ranges::count(numbers, 0) == std::ssize(numbers))
      base::throw_error<shape_error>({"a fan-out is at least 1, or -1 for all neighbours, not ",
                                      wrong != numbers.end() ? *wrong : local_index(0)});
    if (numbers.size() != 1 && std::ssize(numbers) != relations)
      base::throw_error<shape_error>({"a fan-out of ", numbers.size(), " numbers cannot serve a graph of ",
                                      relations, " relations: it has 1, or one for each of them"});
  }

  friend bool operator==(const fanout&, const fanout&) = default;
};

}  // namespace partita::sampling
