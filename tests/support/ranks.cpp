// SPDX-License-Identifier: Apache-2.0
#include "support/ranks.hpp"

#include <cstdlib>
#include <doctest/doctest.h>

#include "partita/comm/threads.hpp"

namespace test_support {

bool sees_fewer_meshes() { return sanitized && std::getenv("PARTITA_ALL_MESHES") == nullptr; }

bool sees(int ranks) { return !sees_fewer_meshes() || ranks <= 2 || ranks == 4 || ranks == 6; }

void on_threads(int ranks, const rank_body& body) { partita::threads::run(ranks, body); }

void on_every_rank_count(const rank_body& body) {
  for (int ranks : rank_counts)
    if (sees(ranks)) on_threads(ranks, body);
}

void check_error(std::string_view part, const std::function<outcome()>& act) {
  const auto [right_type, what] = act();
  CHECK_MESSAGE(right_type, "not the expected exception: ", what);
  CHECK_MESSAGE(what.find(part) != std::string::npos, "expected '", std::string(part), "' in: ", what);
}

}  // namespace test_support
