// SPDX-License-Identifier: Apache-2.0
// Directories of data sets that several ranks read, each its share.

#include "partita/comm/threads.hpp"
#include "partita/io/dataset.hpp"
#include "support/npz_files.hpp"
#include "support/ranks.hpp"

namespace test_dataset_on_ranks {

using namespace test_support;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// 300 vertices on a ring, each edge with a weight, 2 features.
struct ring_dataset : scratch {
  static constexpr global_index n = 300;
  int64s edges, labels;
  bytes split;
  std::vector<float> features;
  std::vector<double> weights;

  ring_dataset() {
    for (global_index v = 0; v < n; ++v) {
      edges.insert(edges.end(), {v, (v + 1) % n});
      weights.push_back(static_cast<double>(v) / 4);
      features.insert(features.end(), {static_cast<float>(v), 1});
      labels.push_back(v == 7 ? 3 : v % 3);
      split.push_back(static_cast<std::uint8_t>(v == 299 ? 1 : 2));
    }
    write();
  }
  void write() const {
    io::write_npy(*this / "edges.npy", {n, 2}, edges);
    io::write_npy(*this / "edge_weight.npy", {n}, weights);
    io::write_npy(*this / "features.npy", {n, 2}, features);
    io::write_npy(*this / "labels.npy", {n}, labels);
    io::write_npy(*this / "split.npy", {n}, split);
  }
};

TEST_CASE("dataset: every rank has the same, although each checks a share") {
  const ring_dataset folder;
  for (const int ranks : {1, 2, 3})
    on_threads(ranks, [&](const communicator& world) {
      const io::dataset data = io::load_dataset(folder.dir, io::vertex_data::features_and_labels, world, 2);
      CHECK(data.vertices == ring_dataset::n);
      CHECK(data.classes == 4);  // seen by one rank alone, as the one vertex to train on is
      CHECK_FALSE(data.vertex_features.has_negative());
      REQUIRE(data.edges.size() == 300);
      CHECK(data.edges[299] == io::edge{299, 0});
      CHECK(data.edge_weights == folder.weights);
      CHECK(data.labels == folder.labels);
      CHECK(data.split == folder.split);
      std::vector<float> row(2);
      for (const global_index v : {0, 150, 299}) {
        data.vertex_features.fill_row(v, row);
        CHECK(row == std::vector<float>{static_cast<float>(v), 1});
      }
    });
}

TEST_CASE("dataset: an error in the share of one rank ends all of them") {
  const auto refused = [](const ring_dataset& folder, const std::string& reason) {
    folder.write();
    for (const int ranks : {1, 2, 3}) {
      const auto read = [&] {
        threads::run(ranks, [&](const communicator& world) {
          io::load_dataset(folder.dir, io::vertex_data::features_and_labels, world);
          world.all_reduce(1);  // where the others are when one has failed
          CHECK_MESSAGE(false, "rank ", world.rank(), " went on");
        });
      };
      CHECK(complaint(folder.dir, read) == reason);
    }
  };
  ring_dataset edge, feature, weight, label;
  edge.edges[2 * 290] = 300;
  refused(edge, "edges.npy: row 290 is the edge 300 -> 291, outside the graph of 300 vertices");
  feature.features[2 * 10] = infinity;
  refused(feature, "features.npy: feature 0 of vertex 10 is inf, which is not a finite number");
  weight.weights[140] = -1;
  refused(
      weight,
      "edge_weight.npy: the weight of row 140 is -1.000000, expected a finite number that is not negative");
  label.labels[299] = 300;
  refused(label,
          "labels.npy: label 300 of vertex 299 is outside the classes, of which there are at most as many as "
          "vertices");
}

TEST_CASE("dataset: an observer is told of more and more bytes, in the end of all") {
  const ring_dataset folder;
  constexpr global_index many = (1 << 18) + 1000;  // edges, in two pieces
  int64s edges;
  for (global_index e = 0; e < many; ++e) edges.insert(edges.end(), {e % 300, (e + 1) % 300});
  io::write_npy(folder / "edges.npy", {many, 2}, edges);
  fs::remove(folder / "edge_weight.npy");
  global_index size = 0;
  for (const auto& file : fs::directory_iterator(folder.dir))
    size += static_cast<global_index>(file.file_size());
  for (const int ranks : {1, 2})
    on_threads(ranks, [&](const communicator& world) {
      std::vector<global_index> told;
      io::load_dataset(folder.dir, io::vertex_data::features_and_labels, world, 1, 0,
                       [&](global_index done, global_index all) {
                         CHECK(all == size);
                         told.push_back(done);
                       });
      CHECK(told.size() >= (ranks == 1 ? 6 : 5));
      CHECK(std::ranges::is_sorted(told));
      CHECK(told.front() > 0);
      CHECK(told.front() < size);
      CHECK(told.back() == size);
      if (ranks == 1) CHECK(told[told.size() - 3] < size - 1000);  // after the first piece of the edges
    });
}

TEST_CASE("dataset: a negative feature that one rank sees is known to all") {
  ring_dataset folder;
  folder.features[401] = -0.5F;
  folder.write();
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const io::feature_table found =
          io::load_dataset(folder.dir, io::vertex_data::features_and_labels, world).vertex_features;
      CHECK(found.has_negative());
      CHECK(found.rows_at(std::vector<global_index>{0}).has_negative());
    });
  CHECK(io::feature_table(1, 2, {1.0, -1.0}).has_negative());
  CHECK_FALSE(io::feature_table(1, 2, {1.0, -0.0}).has_negative());
}

}  // namespace test_dataset_on_ranks
