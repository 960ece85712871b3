// SPDX-License-Identifier: Apache-2.0
// Real graphs, as their README counts them.
#include <doctest/doctest.h>
#include <set>

#include "partita/io/dataset.hpp"

using namespace partita;
namespace fs = std::filesystem;
using int64s = std::vector<std::int64_t>;

TEST_CASE("real data: Cora and CiteSeer") {
  const char* root = std::getenv("PARTITA_DATA");
  REQUIRE_MESSAGE(root != nullptr, "PARTITA_DATA names no folder of real data");
  struct expectation {
    const char* name;
    global_index vertices, edges, features, classes, without_label;
    int64s split, label_counts;
  };
  for (const expectation& expected :
       {expectation{
            "cora", 2708, 10556, 1433, 7, 0, {1068, 140, 500, 1000}, {351, 217, 418, 818, 426, 298, 180}},
        expectation{
            "citeseer", 3327, 9104, 3703, 6, 15, {1707, 120, 500, 1000}, {249, 590, 668, 701, 596, 508}}}) {
    CAPTURE(expected.name);
    const io::dataset data = io::load_dataset(fs::path(root) / expected.name);
    CHECK(data.name == expected.name);
    CHECK(data.vertices == expected.vertices);
    CHECK(static_cast<global_index>(data.edges.size()) == expected.edges);
    CHECK(data.features == expected.features);
    CHECK(data.classes == expected.classes);
    int64s split(4), counts(static_cast<std::size_t>(data.classes));
    global_index without_label = 0;
    for (std::uint8_t part : data.split) ++split[part];
    for (std::int64_t label : data.labels)
      ++(label < 0 ? without_label : counts[static_cast<std::size_t>(label)]);
    CHECK(split == expected.split);
    CHECK(counts == expected.label_counts);
    CHECK(without_label == expected.without_label);
    double total = 0;
    for (global_index v = 0; v < data.vertices; ++v)
      total += static_cast<double>(data.vertex_features.row_sum(v));
    CHECK(total == (data.vertices == 2708 ? 49216 : 105165));
  }
}
