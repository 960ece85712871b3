// SPDX-License-Identifier: Apache-2.0
// Directories of vertices of several types: the one graph that they are, and what is refused.
#include "partita/io/typed_reader.hpp"

#include "partita/io/dataset.hpp"
#include "support/npz_files.hpp"
#include "support/ranks.hpp"
#include "support/typed_vertices.hpp"

namespace test_typed_reader {

using namespace test_support;

struct typed_folder : scratch, typed_vertices {
  typed_folder() {
    for (const char* type : {"author", "paper", "topic"}) fs::create_directories(*this / "vertices" / type);
    fs::create_directories(*this / "edges");
    io::write_npy(*this / "vertices/author/features.npy", {authors, 2}, author_features);
    io::write_npy(*this / "vertices/paper/features.npy", {papers, 3}, paper_features);
    io::write_npy(*this / "vertices/topic/count.npy", {}, int64s{topics});
    io::write_npy(*this / "vertices/paper/labels.npy", {papers}, labels);
    io::write_npy(*this / "vertices/paper/split.npy", {papers}, split);
    for (const relation& r : relations) write(r.name, r.ends);
  }
  void write(const std::string& name, const int64s& ends) const {
    io::write_npy(*this / "edges" / (name + ".npy"), {std::ssize(ends) / 2, 2}, ends);
  }
  std::string complaint(io::vertex_data wanted = io::vertex_data::features_and_labels) const {
    return test_support::complaint(dir, [&] { io::load_dataset(dir, wanted); });
  }
};

TEST_CASE("vertices of several types are one graph, with a block of features for each") {
  const typed_folder folder;
  const io::dataset expected = folder.graph();
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      std::vector<std::pair<global_index, global_index>> told;
      const io::dataset data = io::load_dataset(folder.dir, io::vertex_data::features_and_labels, world, 1, 0,
                                                [&](global_index done, global_index of) {
                                                  told.push_back({done, of});
                                                });
      CHECK(told.size() == 6);
      CHECK(told.back().first == told.back().second);
      CHECK(data.name == folder.dir.filename().string());
      CHECK(data.vertices == expected.vertices);
      CHECK(data.features == expected.features);
      CHECK(data.classes == 2);
      CHECK(data.edges == expected.edges);
      CHECK(data.edge_types == expected.edge_types);
      CHECK(data.relations == 3);
      CHECK(data.relation_names == expected.relation_names);
      CHECK(data.vertex_types == expected.vertex_types);
      CHECK(data.labels == expected.labels);
      CHECK(data.split == expected.split);
      CHECK(
          data.notes.back() ==
          "vertices are 0 to 4 author, 5 to 18 paper, 19 to 22 topic; relations are 0 author-writes-paper, 1 "
          "paper-cites-paper, 2 topic-of-paper");
      CHECK(data.vertex_features.is_sparse());
      std::vector<float> found(9), row(9);
      for (global_index v = 0; v < data.vertices; ++v) {
        data.vertex_features.fill_row(v, found);
        expected.vertex_features.fill_row(v, row);
        CHECK(found == row);
      }
    });
}

TEST_CASE("types with features in CSR and in double, values and several labels, and without labels") {
  const typed_folder folder;
  entries csr = small_csr();
  csr["shape"] = npy_text(int64s{5, 9});
  csr["indptr"] = npy_text(int64s{0, 1, 2, 3, 4, 4});
  csr["data"] = npy_text(std::vector<double>{1.0 / 3, 2, 3, 4});
  write_npz(folder / "vertices/author/features_csr.npz", csr);
  const std::vector<float> values(2 * typed_vertices::papers, 0.5F);
  io::write_npy(folder / "vertices/paper/labels.npy", {typed_vertices::papers, 2}, values);
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.vertex_types[1].columns == interval{9, 12});
  CHECK(data.vertex_features.row_sum(0) == 1.0 / 3);
  CHECK(data.task == io::task::values);
  REQUIRE(data.values.size() == 2 * typed_vertices::all);
  CHECK(std::isnan(data.values[9]));
  CHECK(data.values[10] == 0.5);

  io::write_npy(folder / "vertices/paper/labels.npy", {typed_vertices::papers, 2},
                bytes(2 * typed_vertices::papers, 1));
  const io::dataset several = io::load_dataset(folder.dir, io::vertex_data::labels);
  CHECK(several.features == 0);
  CHECK(several.vertex_features.rows == 0);
  CHECK(several.label_matrix[9] == 0);
  CHECK(several.label_matrix[10] == 1);
  CHECK(several.label_matrix.size() == 2 * typed_vertices::all);

  fs::remove(folder / "vertices/paper/split.npy");
  CHECK(folder.complaint() == "vertices/paper/split.npy: no such file");
  fs::remove(folder / "vertices/paper/labels.npy");
  CHECK(folder.complaint() == "vertices: has no labels.npy in any type");
  const io::dataset none = io::load_dataset(folder.dir, io::vertex_data::features);
  CHECK(none.labels.empty());
  CHECK(none.split.empty());
  CHECK(none.features == 9 + 3 + 4);
}

TEST_CASE("relations have weights and features of edges, or 1 and zeros") {
  typed_folder folder;
  const auto write = [&]<class T>(const std::string& name, const std::vector<global_index>& shape,
                                  const std::vector<T>& values) {
    io::write_npy(folder / "edges" / (name + ".npy"), shape, values);
  };
  const auto rest = static_cast<std::size_t>(28 + 14 - 1);  // edges of authors and papers, and of topics
  folder.write("topic-of-paper", {3, 1});
  write("paper-cites-paper.weight", {14}, std::vector<float>(14, 0.5F));
  write("paper-cites-paper.features", {14, 2}, std::vector<float>(28, -2));
  io::dataset data = io::load_dataset(folder.dir);
  std::vector<double> weights(rest + 2, 1);
  std::fill_n(weights.begin() + 28, 14, 0.5);
  CHECK(data.edge_weights == weights);
  CHECK(data.edge_features.rows == 43);
  CHECK(data.edge_features.cols == 2);
  CHECK(data.edge_features.has_negative());
  std::vector<double> row(2);
  for (const auto& [e, value] : {std::pair(27, 0.0), {28, -2.0}, {41, -2.0}, {42, 0.0}}) {
    data.edge_features.fill_row(e, row);
    CHECK(row == std::vector<double>{value, value});
  }

  write("topic-of-paper.weight", {1}, std::vector<double>{3});
  write("topic-of-paper.features", {1, 2}, std::vector<double>{1.0 / 3, 4});
  weights.back() = 3;
  on_threads(2, [&](const communicator& world) {
    const io::dataset both = io::load_dataset(folder.dir, io::vertex_data::labels, world);
    CHECK(both.relation_names == data.relation_names);
    CHECK(both.edge_weights == weights);
    CHECK(both.edge_features.row_sum(42) == 1.0 / 3 + 4);
  });

  const auto refused = [&]<class T>(const std::string& name, const std::vector<global_index>& shape,
                                    const std::vector<T>& values) {
    write("topic-of-paper." + name, shape, values);
    return folder.complaint();
  };
  using floats = std::vector<float>;
  CHECK(
      refused("features", {1, 3}, floats{1, 2, 3}) ==
      "edges/topic-of-paper.features.npy: expected 2 features of an edge, as paper-cites-paper.features.npy "
      "has, found the shape 1 x 3");
  CHECK(refused("features", {2, 2}, floats{1, 2, 3, 4}) ==
        "edges/topic-of-paper.features.npy: expected a row of features for each of the 1 rows of "
        "topic-of-paper.npy, found the shape 2 x 2");
  CHECK(refused("features", {1, 2}, floats{1, std::nanf("")}) ==
        "edges/topic-of-paper.features.npy: feature 1 of edge 0 is nan, which is not a finite number");
  CHECK(refused("weight", {2}, floats{1, 1}) ==
        "edges/topic-of-paper.weight.npy: expected 1 weights, one for each row of topic-of-paper.npy, found "
        "the shape (2,)");
  CHECK(refused("weight", {1}, floats{-1}) ==
        "edges/topic-of-paper.weight.npy: the weight of row 0 is -1.000000, expected a finite number that is "
        "not negative");
  fs::remove(folder / "edges/topic-of-paper.npy");
  CHECK(folder.complaint() == "edges/topic-of-paper.features.npy: needs topic-of-paper.npy");
}

TEST_CASE("what is wrong with vertices or edges is named with its file and row") {
  const auto refused = [](const auto& damage) {
    const typed_folder folder;
    damage(folder);
    return folder.complaint();
  };
  const auto edges = [&](const std::string& name, const int64s& ends) {
    return refused([&](const typed_folder& folder) { folder.write(name, ends); });
  };
  CHECK(edges("author-writes-paper", {0, 0, 5, 1}) ==
        "edges/author-writes-paper.npy: row 1 has the source 5, outside the 5 vertices of author");
  CHECK(edges("topic-of-paper", {3, -1}) ==
        "edges/topic-of-paper.npy: row 0 has the target -1, outside the 14 vertices of paper");
  const std::string expected =
      ": expected SOURCE-RELATION-TARGET.npy, with two of the types author, paper, topic, which are the "
      "folders "
      "in vertices";
  CHECK(edges("author-writes-book", {}) == "edges/author-writes-book.npy" + expected);
  CHECK(edges("author-paper", {}) == "edges/author-paper.npy" + expected);
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "edges/paper-cites-paper.npy", {3}, int64s{1, 2, 3});
        }) == "edges/paper-cites-paper.npy: expected two vertices in each row, found the shape (3,)");
  CHECK(refused([](const typed_folder& f) {
          fs::create_directories(f / "vertices/author-writes");
          io::write_npy(f / "vertices/author-writes/count.npy", {1}, int64s{1});
          f.write("author-writes-on-paper", {0, 0});
        }) ==
        "edges/author-writes-on-paper.npy: its name has more than one pair of the types author, "
        "author-writes, paper, topic");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "vertices/topic/labels.npy", {4}, int64s{0, 1, 0, 1});
          io::write_npy(f / "vertices/topic/split.npy", {4}, bytes{1, 1, 2, 3});
        }) == "vertices/topic/labels.npy: is of a second type, and one type has labels: paper has some");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "vertices/topic/split.npy", {4}, bytes{1, 1, 2, 3});
        }) == "vertices/topic/split.npy: is of a type without labels.npy");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "vertices/paper/labels.npy", {2}, int64s{0, 1});
        }) == "vertices/paper/labels.npy: expected 14 labels, one for each row of features.npy, found 2");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "vertices/author/features.npy", {2, 1}, std::vector<float>{1, std::nanf("")});
        }) == "vertices/author/features.npy: feature 0 of vertex 1 is nan, which is not a finite number");
  const auto counted = [&](const std::vector<global_index>& shape, const int64s& numbers) {
    return refused(
        [&](const typed_folder& f) { io::write_npy(f / "vertices/topic/count.npy", shape, numbers); });
  };
  CHECK(counted({2}, {4, 5}) == "vertices/topic/count.npy: expected one number, found the shape (2,)");
  CHECK(counted({}, {0}) == "vertices/topic/count.npy: says that there are 0 vertices, expected at least 1");
  CHECK(counted({}, {3}) ==
        "edges/topic-of-paper.npy: row 3 has the source 3, outside the 3 vertices of topic");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "vertices/paper/count.npy", {1}, int64s{15});
        }) == "vertices/paper/count.npy: says another number of vertices than the 14 rows of features.npy");
  CHECK(refused([](const typed_folder& f) { fs::remove(f / "vertices/topic/count.npy"); }) ==
        "vertices/topic: has neither features_csr.npz nor features.npy nor count.npy");
  CHECK(refused([](const typed_folder& f) {
          io::write_npy(f / "edges.npy", {0, 2}, int64s{});
        }) ==
        "edges.npy: is beside vertices, whose edges are in edges/, and what else there is in vertices/TYPE/");
  CHECK(refused([](const typed_folder& f) { fs::remove_all(f / "edges"); }) ==
        "edges: cannot be read (No such file or directory)");
  CHECK(refused([](const typed_folder& f) {
          for (const auto& r : f.relations) fs::remove(f / "edges" / (r.name + ".npy"));
        }) == "edges: has no SOURCE-RELATION-TARGET.npy");
  CHECK(refused([](const typed_folder& f) {
          fs::remove_all(f / "vertices");
          fs::create_directories(f / "vertices");
        }) == "vertices: has no folder for a type of vertices");
}

}  // namespace test_typed_reader
