// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every run of training must show: words as predicted, the losses of another run.
#include <doctest/doctest.h>

#include "partita/train/options.hpp"
#include "support/meshes.hpp"

namespace test_support {

inline void check_words(const partita::nn::training_result& r) {
  CHECK(r.words_received.max_rank == r.predicted_words_received.max_rank);
  CHECK(r.words_received.total == r.predicted_words_received.total);
}

enum class scores { compared, not_compared };

/// Every epoch's loss is that of `expected`, but for rounding, and words are as predicted.
inline void check_run(const partita::nn::training_result& r, const partita::nn::training_result& expected,
                      double tolerance, const std::string& what = {},
                      scores accuracies = scores::not_compared) {
  INFO(what);
  check_words(r);
  REQUIRE(r.epochs.size() == expected.epochs.size());
  for (std::size_t e = 0; e < r.epochs.size(); ++e) {
    const double loss = expected.epochs[e].loss;
    CHECK_MESSAGE(std::abs(r.epochs[e].loss - loss) < tolerance * loss, "epoch ", e + 1);
    if (accuracies == scores::compared) CHECK(r.epochs[e].test_accuracy == expected.epochs[e].test_accuracy);
  }
}

/// The name of a policy and its mesh.
inline std::string where(const partita::policy& p, partita::mesh_shape shape) {
  return std::string(p.name) + " on " + to_string(shape);
}

}  // namespace test_support
