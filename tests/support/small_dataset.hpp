// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "partita/io/dataset.hpp"
#include "support/npz_files.hpp"

namespace test_support {

/// A directory of 4 vertices, 3 features, 2 classes and 3 edges.
struct small_dataset : scratch {
  small_dataset() {
    io::write_npy(*this / "edges.npy", {3, 2}, int64s{0, 1, 1, 0, 3, 2});
    io::write_npy(*this / "features.npy", {4, 3}, std::vector<float>{1, 0, 2, 0, 0, 0, 3, 1, 0, 0, 0, 5});
    io::write_npy(*this / "labels.npy", {4}, int64s{0, 1, -1, 1});
    io::write_npy(*this / "split.npy", {4}, bytes{1, 2, 0, 3});
  }
  std::string complaint() const {
    return test_support::complaint(dir, [&] { io::load_dataset(dir); });
  }
};

}  // namespace test_support
