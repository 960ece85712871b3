// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Numbers that differ from step to step.

namespace partita::base {

/// A number that a kernel is given, or finds where the numbers of a step are when it runs.
template <class V>
struct step_number {
  V value{};
  const V* at = nullptr;

  constexpr step_number(V given = {}) : value(given) {}
  constexpr explicit step_number(const V* place) : at(place) {}
  constexpr operator V() const { return at == nullptr ? value : *at; }
};

}  // namespace partita::base
