// SPDX-License-Identifier: Apache-2.0
// Directories of data sets: what they may hold, and what is refused.
#include "partita/io/dataset.hpp"

#include "support/ranks.hpp"
#include "support/small_dataset.hpp"

namespace test_dataset {

using namespace test_support;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_CASE("dataset: a directory with dense features") {
  const small_dataset folder;
  for (const fs::path& dir : {folder.dir, folder.dir / "", folder.dir / "."}) {
    const io::dataset data = io::load_dataset(dir);
    CHECK(data.name == folder.dir.filename().string());
    CHECK(data.vertices == 4);
    CHECK(data.features == 3);
    CHECK(data.classes == 2);
    CHECK(data.edges == std::vector<io::edge>{{0, 1}, {1, 0}, {3, 2}});
    CHECK(data.edge_weights.empty());
    CHECK(data.labels == int64s{0, 1, -1, 1});
    CHECK(data.split == bytes{1, 2, 0, 3});
    CHECK(data.task == io::task::classes);
    CHECK_FALSE(data.vertex_features.is_sparse());
    std::vector<float> row(3);
    data.vertex_features.fill_row(2, row);
    CHECK(row == std::vector<float>{3, 1, 0});
    CHECK(data.vertex_features.row_sum(0) == 3);
    CHECK(data.vertex_features.row_sum(1) == 0);
  }
}

TEST_CASE("dataset: to predict, labels and split may be absent") {
  const small_dataset folder;
  const auto read = [&](io::vertex_data wanted, global_index n = 0) {
    return io::load_dataset(folder.dir, wanted, n);
  };
  CHECK(read(io::vertex_data::features).labels == int64s{0, 1, -1, 1});
  CHECK(read(io::vertex_data::edges, 4).split == bytes{1, 2, 0, 3});
  CHECK(complaint(folder.dir, [&] { read(io::vertex_data::edges, 5); }) ==
        "labels.npy: expected 5 labels, one for each row of the embedding, found 4");
  io::write_npy(folder / "split.npy", {4}, bytes{0, 2, 0, 3});  // nobody is trained on
  CHECK(read(io::vertex_data::features).classes == 2);
  fs::remove(folder / "split.npy");
  for (const io::dataset& data : {read(io::vertex_data::features), read(io::vertex_data::edges, 4)}) {
    CHECK(data.vertices == 4);
    CHECK(data.classes == 0);
    CHECK(data.labels.empty());
    CHECK(data.split.empty());
    CHECK(data.edges.size() == 3);
  }
  fs::remove(folder / "labels.npy");
  CHECK(read(io::vertex_data::features).features == 3);
  fs::remove(folder / "features.npy");
  CHECK(read(io::vertex_data::edges, 4).features == 0);
  io::write_npy(folder.dir / "count.npy", {1}, std::vector<std::int64_t>{4});
  CHECK(read(io::vertex_data::edges).vertices == 4);
  std::filesystem::remove(folder.dir / "count.npy");
  CHECK(complaint(folder.dir, [&] { read(io::vertex_data::edges); }) ==
        " has neither features_csr.npz nor features.npy nor count.npy");
  CHECK(complaint(folder.dir, [&] { read(io::vertex_data::edges, 3); }) ==
        "edges.npy: row 2 is the edge 3 -> 2, outside the graph of 3 vertices");
  CHECK_THROWS_AS(read(io::vertex_data::features), input_error);
}

TEST_CASE("dataset: without features, vertices are those that have labels") {
  const small_dataset folder;
  const auto check = [&] {
    const io::dataset data = io::load_dataset(folder.dir, io::vertex_data::labels);
    CHECK(data.vertices == 4);
    CHECK(data.features == 0);
    CHECK(data.vertex_features.rows == 0);
    CHECK(data.classes == 2);
    CHECK(data.edges.size() == 3);
  };
  check();
  fs::remove(folder / "features.npy");
  check();
  CHECK(folder.complaint().find("has neither features_csr.npz nor features.npy") != std::string::npos);
  io::write_npy(folder / "split.npy", {3}, bytes{1, 2, 0});
  const auto read = [&] { io::load_dataset(folder.dir, io::vertex_data::labels); };
  CHECK(complaint(folder.dir, read).find("expected 4 entries, one for each row of labels.npy, found 3") !=
        std::string::npos);
  io::write_npy(folder / "labels.npy", {0}, int64s{});
  CHECK(complaint(folder.dir, read).find("holds no labels") != std::string::npos);
}

TEST_CASE("dataset: sparse features come before dense ones") {
  const small_dataset folder;
  entries csr = small_csr();
  csr["shape"] = npy_text(int64s{4, 9});
  csr["indptr"] = npy_text(std::vector<std::int32_t>{0, 2, 2, 4, 4});
  csr["format"] = format_npy("csr");
  write_npz(folder / "features_csr.npz", csr);
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.features == 9);
  CHECK(data.vertex_features.is_sparse());
  std::vector<float> row(9, 7);
  data.vertex_features.fill_row(2, row);
  CHECK(row == std::vector<float>{6, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(data.vertex_features.row_sum(0) == 3);
  CHECK_THROWS_WITH_AS(data.vertex_features.fill_row(4, row), "features have 4 rows, there is no row 4",
                       shape_error);
  row.resize(8);
  CHECK_THROWS_WITH_AS(data.vertex_features.fill_row(0, row),
                       "a row of 9 features does not fit into a span of 8", shape_error);
  CHECK_THROWS_WITH_AS(io::feature_table(2, 2, {1, 2, 3}),
                       "features of shape 2 x 2 cannot be made of 3 values", shape_error);
}

TEST_CASE("dataset: features of edges") {
  const small_dataset folder;
  CHECK(io::load_dataset(folder.dir).edge_features.rows == 0);
  io::write_npy(folder / "edge_features.npy", {3, 2}, std::vector<float>{0, 0.5, 2, 3, -4, 5});
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.edge_features.rows == 3);
  CHECK(data.edge_features.cols == 2);
  CHECK(data.edge_features.has_negative());
  std::vector<double> row(2);
  data.edge_features.fill_row(2, row);
  CHECK(row == std::vector<double>{-4, 5});
  const auto features = [&](const std::vector<global_index>& shape, const std::vector<double>& values) {
    io::write_npy(folder / "edge_features.npy", shape, values);
    return folder.complaint();
  };
  CHECK(features({3, 1}, {1, 2, 3}) == "");
  CHECK(features({2, 2}, {1, 2, 3, 4}) ==
        "edge_features.npy: expected a row of features for each of the 3 rows of edges.npy, found the shape "
        "2 x 2");
  CHECK(features({3}, {1, 2, 3}) ==
        "edge_features.npy: expected a row of features for each edge, found the shape (3,)");
  CHECK(features({3, 1}, {1, std::nan(""), 3}) ==
        "edge_features.npy: feature 0 of edge 1 is nan, which is not a finite number");
}

TEST_CASE("dataset: types of edges") {
  const small_dataset folder;
  CHECK(io::load_dataset(folder.dir).relations == 0);
  io::write_npy(folder / "edge_type.npy", {3}, std::vector<std::int64_t>{2, 0, 2});
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.relations == 3);
  CHECK(std::vector(data.edge_types.begin(), data.edge_types.end()) == std::vector<std::int64_t>{2, 0, 2});
  const auto types = [&](const std::vector<global_index>& shape, const auto& values) {
    io::write_npy(folder / "edge_type.npy", shape, values);
    return folder.complaint();
  };
  CHECK(types({3}, std::vector<std::uint8_t>{1, 0, 1}) == "");
  CHECK(types({2}, std::vector<std::int32_t>{1, 0}) ==
        "edge_type.npy: expected 3 types, one for each row of edges.npy, found the shape (2,)");
  CHECK(types({3}, std::vector<double>{1, 0, 1}) ==
        "edge_type.npy: holds float64, expected whole numbers such as int64, types from 0");
  CHECK(types({3}, std::vector<std::int64_t>{0, -1, 0}) ==
        "edge_type.npy: the type of row 1 is -1, outside the types, of which there are at most as many as "
        "edges");
}

TEST_CASE("dataset: weights and several labels") {
  const small_dataset folder;
  io::write_npy(folder / "edge_weight.npy", {3}, std::vector<double>{0, 0.5, 2});
  io::write_npy(folder / "labels.npy", {4, 2}, int64s{0, 1, 1, 1, 0, 0, 1, 0});
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.edge_weights == std::vector<double>{0, 0.5, 2});
  CHECK(data.task == io::task::labels);
  CHECK(data.classes == 2);
  CHECK(data.labels.empty());
  CHECK(data.label_matrix == bytes{0, 1, 1, 1, 0, 0, 1, 0});
  io::write_npy(folder / "labels.npy", {4, 2}, bytes{0, 1, 1, 1, 0, 0, 1, 0});
  io::write_npy(folder / "edge_weight.npy", {3}, std::vector<float>{0, 0.5, 2});
  CHECK(io::load_dataset(folder.dir).label_matrix == data.label_matrix);
  CHECK(io::load_dataset(folder.dir).edge_weights == std::vector<double>{0, 0.5, 2});
  io::write_npy(folder / "labels.npy", {4, 2}, bytes{0, 1, 7, 1, 0, 0, 1, 0});
  CHECK(folder.complaint() == "labels.npy: entry 0 of row 1 is 7, expected 0 or 1");
}

TEST_CASE("dataset: labels in a column and in other types, with a line that says how they are read") {
  const small_dataset folder;
  const auto read = [&](std::optional<io::task> task) {
    return io::load_dataset(folder.dir, io::vertex_data::features_and_labels, 0, {}, task);
  };
  const std::string column = "labels.npy is a column: each number in it is the class of a vertex";
  const auto check = [&]<class T>(T none) {
    constexpr bool floating = std::is_floating_point_v<T>;  // otherwise values
    for (const bool squeezed : {false, true}) {
      io::write_npy(folder / "labels.npy",
                    squeezed ? std::vector<global_index>{4, 1} : std::vector<global_index>{4},
                    std::vector<T>{0, 1, none, 1});
      const io::dataset data = read(floating ? std::optional(io::task::classes) : std::nullopt);
      CHECK(data.task == io::task::classes);
      CHECK(data.labels == int64s{0, 1, std::is_unsigned_v<T> ? 0 : -1, 1});
      CHECK(data.classes == 2);
      CHECK(data.notes.size() == (squeezed ? 1 : 0));
      if (squeezed) CHECK(data.notes.back() == column);
    }
    io::write_npy(folder / "labels.npy", {4, 2}, std::vector<T>{0, 1, 1, 1, 0, 0, 1, 0});
    CHECK(read(floating ? std::optional(io::task::labels) : std::nullopt).label_matrix ==
          bytes{0, 1, 1, 1, 0, 0, 1, 0});
  };
  check(std::int64_t{-1}), check(std::int32_t{-1}), check(std::int16_t{-1}), check(std::int8_t{-1});
  check(std::uint8_t{0}), check(std::uint16_t{0}), check(std::uint32_t{0}), check(std::uint64_t{0});
  check(std::nanf("")), check(-1.0);
}

TEST_CASE("dataset: a link that leads nowhere is no file that was left out") {
  for (const char* name : {"edge_weight.npy", "features_csr.npz"}) {
    const small_dataset folder;
    fs::create_symlink("nowhere", folder / name);
    CHECK(folder.complaint().starts_with(std::string(name) + ": "));
  }
}

TEST_CASE("dataset: missing files") {
  const small_dataset folder;
  CHECK(complaint(folder.dir, [&] { io::load_dataset(folder.dir / "none"); }) == "none: is not a directory");
  for (const char* name : {"edges.npy", "labels.npy", "split.npy"}) {
    const std::string kept = read_text(folder / name);
    fs::remove(folder / name);
    CHECK(folder.complaint() == std::string(name) + ": no such file");
    write_text(folder / name, kept);
  }
  fs::remove(folder / "features.npy");
  CHECK(folder.complaint() == " has neither features_csr.npz nor features.npy");
}

TEST_CASE("dataset: features that cannot be used") {
  const small_dataset folder;
  const auto features = [&](const std::vector<global_index>& shape, const std::vector<float>& values) {
    io::write_npy(folder / "features.npy", shape, values);
    return folder.complaint();
  };
  CHECK(features({2}, {1, 2}) ==
        "features.npy: expected a row of features for each vertex, found the shape (2,)");
  CHECK(features({4, 0}, {}) == "features.npy: holds no features");
  CHECK(features({0, 3}, {}) == "features.npy: holds no features");
  CHECK(features({4, 2}, {1, 2, 3, 4, 5, infinity, 7, 8}) ==
        "features.npy: feature 1 of vertex 2 is inf, which is not a finite number");
  CHECK(features({4, 2}, {1, 2, 3, 4, 5, 6, std::nanf(""), 8}) ==
        "features.npy: feature 0 of vertex 3 is nan, which is not a finite number");
  entries csr = small_csr();
  csr["data"] = npy_text(std::vector<double>{1, 2, 3, infinity});
  csr["indices"] = npy_text(int64s{1, 3, 0, 2});
  write_npz(folder / "features_csr.npz", csr);
  CHECK(folder.complaint() == "features_csr.npz: feature 2 of vertex 2 is inf, which is not a finite number");
}

TEST_CASE("dataset: splits, edges and weights that cannot be used") {
  const small_dataset folder;
  const auto split = [&](const std::vector<global_index>& shape, const bytes& values) {
    io::write_npy(folder / "split.npy", shape, values);
    return folder.complaint();
  };
  CHECK(split({4}, {1, 2, 0, 4}) == "split.npy: the split of vertex 3 is 4, expected 0, 1, 2 or 3");
  CHECK(split({4}, {0, 2, 0, 3}) == "split.npy: no vertex is in the training set (split 1)");
  CHECK(split({5}, {1, 2, 0, 3, 3}) ==
        "split.npy: expected 4 entries, one for each row of features.npy, found 5");
  CHECK(split({2, 2}, {1, 2, 0, 3}) == "split.npy: expected a number for each vertex, found the shape 2 x 2");
  CHECK(split({4}, {1, 2, 0, 3}) == "");

  const auto edges = [&](const std::vector<global_index>& shape, const int64s& values) {
    io::write_npy(folder / "edges.npy", shape, values);
    return folder.complaint();
  };
  CHECK(edges({2, 2}, {0, 1, 3, 4}) ==
        "edges.npy: row 1 is the edge 3 -> 4, outside the graph of 4 vertices");
  CHECK(edges({2, 2}, {-1, 1, 3, 4}) ==
        "edges.npy: row 0 is the edge -1 -> 1, outside the graph of 4 vertices");
  CHECK(edges({2, 3}, {0, 1, 2, 3, 0, 1}) ==
        "edges.npy: expected two vertices in each row, found the shape 2 x 3");
  CHECK(edges({4}, {0, 1, 2, 3}) == "edges.npy: expected two vertices in each row, found the shape (4,)");
  io::write_npy(folder / "edges.npy", {2, 2}, std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(folder.complaint() == "");
  io::write_npy(folder / "edges.npy", {2, 2}, std::vector<std::uint64_t>{0, 1, 2, ~std::uint64_t{0}});
  CHECK(folder.complaint() ==
        "edges.npy: row 1, column 1, is 18446744073709551615, larger than 9223372036854775807");
  io::write_npy(folder / "edges.npy", {2, 2}, std::vector<float>{0, 1, 2, 3});
  CHECK(folder.complaint() == "edges.npy: expected int64 values, found float32");
  CHECK(edges({0, 2}, {}) == "");
  CHECK(edges({2, 2}, {0, 1, 3, 3}) == "");

  const auto weights = [&](const std::vector<global_index>& shape, const std::vector<double>& values) {
    io::write_npy(folder / "edge_weight.npy", shape, values);
    return folder.complaint();
  };
  const std::string expected =
      "edge_weight.npy: expected 2 weights, one for each row of edges.npy, found the shape ";
  CHECK(weights({3}, {1, 1, 1}) == expected + "(3,)");
  CHECK(weights({2, 1}, {1, 1}) == expected + "2 x 1");
  CHECK(weights({2}, {1, -0.5}) ==
        "edge_weight.npy: the weight of row 1 is -0.500000, expected a finite number that is not negative");
  CHECK(weights({2}, {1, std::nan("")}) ==
        "edge_weight.npy: the weight of row 1 is nan, expected a finite number that is not negative");
  CHECK(weights({2}, {infinity, 1}) ==
        "edge_weight.npy: the weight of row 0 is inf, expected a finite number that is not negative");
}

TEST_CASE("dataset: features in float64 stay so, dense and sparse") {
  const small_dataset folder;
  const std::vector<double> thirds{1.0 / 3, 0, 2.0 / 3, 0, 1.0 / 3, 0, 1, 0};
  io::write_npy(folder / "features.npy", {4, 2}, thirds);
  std::vector<double> row(2);
  io::load_dataset(folder.dir).vertex_features.fill_row(1, row);
  CHECK(row == std::vector<double>{2.0 / 3, 0});
  io::write_npy(folder / "features.npy", {4, 2}, std::vector<double>{1, 0, 0, 0, 0, std::nan(""), 1, 0});
  CHECK(folder.complaint() == "features.npy: feature 1 of vertex 2 is nan, which is not a finite number");
  entries csr = small_csr();
  csr["shape"] = npy_text(int64s{4, 9});
  csr["indptr"] = npy_text(int64s{0, 1, 2, 3, 4});
  csr["data"] = npy_text(std::vector<double>{1.0 / 3, 2, 3, 4});
  write_npz(folder / "features_csr.npz", csr);
  CHECK(io::load_dataset(folder.dir).vertex_features.row_sum(0) == 1.0 / 3);
}

}  // namespace test_dataset
