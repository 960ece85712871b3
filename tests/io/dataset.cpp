// SPDX-License-Identifier: Apache-2.0
#include "partita/io/dataset.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <zip.h>

#include "partita/base/random.hpp"
#include "support/scratch.hpp"

using namespace partita;
using namespace test_support;

namespace {

using int64s = std::vector<std::int64_t>;
using bytes = std::vector<std::uint8_t>;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The entries of an .npz file: name and the text of a .npy file.
using entries = std::map<std::string, std::string>;

template <class T>
std::string npy_text(const std::vector<global_index>& shape, const std::vector<T>& values) {
  scratch folder;
  io::write_npy(folder / "x.npy", shape, values);
  return read_text(folder / "x.npy");
}

template <class T>
std::string npy_text(const std::vector<T>& values) {
  return npy_text({static_cast<global_index>(values.size())}, values);
}

void write_npz(const fs::path& path, const entries& files) {
  int code = 0;
  zip_t* archive = zip_open(path.string().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE(archive != nullptr);
  for (const auto& [name, text] : files)
    REQUIRE(zip_file_add(archive, (name + ".npy").c_str(),
                         zip_source_buffer(archive, text.data(), text.size(), 0), 0) >= 0);
  REQUIRE(zip_close(archive) == 0);
}

/// 3 x 4: (0,1) = 1, (0,3) = 2, (2,0) = 3 twice.
entries small_csr() {
  return {{"shape", npy_text(int64s{3, 4})},
          {"indptr", npy_text(int64s{0, 2, 2, 4})},
          {"indices", npy_text(std::vector<std::int32_t>{1, 3, 0, 0})},
          {"data", npy_text(std::vector<float>{1, 2, 3, 3})}};
}

std::string format_npy(const std::string& format) {
  std::string header =
      "{'descr': '|S" + std::to_string(format.size()) + "', 'fortran_order': False, 'shape': (), }\n";
  return "\x93NUMPY" + std::string{1, 0, static_cast<char>(header.size()), 0} + header + format;
}

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

}  // namespace

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
    CHECK_FALSE(data.multi_label);
    CHECK_FALSE(data.vertex_features.is_sparse());
    std::vector<float> row(3);
    data.vertex_features.fill_row(2, row);
    CHECK(row == std::vector<float>{3, 1, 0});
    CHECK(data.vertex_features.row_sum(0) == 3);
    CHECK(data.vertex_features.row_sum(1) == 0);
  }
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

TEST_CASE("dataset: weights and several labels") {
  const small_dataset folder;
  io::write_npy(folder / "edge_weight.npy", {3}, std::vector<double>{0, 0.5, 2});
  io::write_npy(folder / "labels.npy", {4, 2}, int64s{0, 1, 1, 1, 0, 0, 1, 0});
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.edge_weights == std::vector<double>{0, 0.5, 2});
  CHECK(data.multi_label);
  CHECK(data.classes == 2);
  CHECK(data.labels.empty());
  CHECK(data.label_matrix == bytes{0, 1, 1, 1, 0, 0, 1, 0});
  io::write_npy(folder / "labels.npy", {4, 2}, bytes{0, 1, 1, 1, 0, 0, 1, 0});
  io::write_npy(folder / "edge_weight.npy", {3}, std::vector<float>{0, 0.5, 2});
  CHECK(io::load_dataset(folder.dir).label_matrix == data.label_matrix);
  CHECK(io::load_dataset(folder.dir).edge_weights == data.edge_weights);
  io::write_npy(folder / "labels.npy", {4, 2}, bytes{0, 1, 7, 1, 0, 0, 1, 0});
  CHECK(folder.complaint() == "labels.npy: entry 0 of row 1 is 7, expected 0 or 1");
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

TEST_CASE("dataset: labels that cannot be used") {
  const small_dataset folder;
  const auto labels = [&](const std::vector<global_index>& shape, const int64s& values) {
    io::write_npy(folder / "labels.npy", shape, values);
    return folder.complaint();
  };
  CHECK(labels({4}, {0, 1, -2, 1}) == "labels.npy: label -2 of vertex 2 is outside the classes");
  CHECK(labels({4}, {0, 1, -1, 999999}) == "labels.npy: label 999999 of vertex 3 is outside the classes");
  CHECK(labels({4}, {0, -1, -1, 1}) ==
        "labels.npy: label -1 of vertex 1 means none, but the split of that vertex is 2");
  CHECK(labels({3}, {0, 1, 0}) == "labels.npy: expected 4 labels, one for each row of features.npy, found 3");
  CHECK(labels({2, 1}, {0, 1}) == "labels.npy: expected 4 labels, one for each row of features.npy, found 2");
  CHECK(labels({4, 2}, {0, 1, 1, 1, 0, 2, 1, 0}) == "labels.npy: entry 1 of row 2 is 2, expected 0 or 1");
  CHECK(labels({4, 0}, {}) == "labels.npy: has no classes");
  CHECK(labels({4, 1, 1}, {0, 1, 0, 1}) ==
        "labels.npy: expected a label or a row of labels for each vertex, found the shape 4 x 1 x 1");
  CHECK(labels({}, {0}) ==
        "labels.npy: expected a label or a row of labels for each vertex, found the shape ()");
  io::write_npy(folder / "labels.npy", {4, 1}, std::vector<float>{0, 1, 0, 1});
  CHECK(folder.complaint() == "labels.npy: expected int64 values, found float32");
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

TEST_CASE("npz: entries of matrices in rows, in columns and in coordinates") {
  const scratch folder;
  const fs::path path = folder / "m.npz";
  const std::vector<triplet<double>> expected{{0, 1, 1}, {0, 3, 2}, {2, 0, 3}, {2, 0, 3}};
  const auto read = [&](entries files) {
    write_npz(path, files);
    auto a = io::read_sparse_npz(path);
    CHECK(a.shape == matrix_shape{3, 4});
    std::ranges::sort(a.entries, {}, [](const auto& e) { return std::pair(e.row, e.col); });
    CHECK(a.entries == expected);
  };
  const auto refused = [&](entries files, const std::string& entry, const std::string& text) {
    files[entry] = text;
    write_npz(path, files);
    return complaint(folder.dir, [&] { io::read_sparse_npz(path); });
  };
  read(small_csr());
  const entries csc{{"format", format_npy("csc")},
                    {"shape", npy_text(int64s{3, 4})},
                    {"indptr", npy_text(int64s{0, 2, 3, 3, 4})},
                    {"indices", npy_text(std::vector<std::int32_t>{2, 2, 0, 0})},
                    {"data", npy_text(std::vector<float>{3, 3, 1, 2})}};
  read(csc);
  CHECK(refused(csc, "indices", npy_text(int64s{2, 3, 0, 0})) ==
        "m.npz: column 0 has an entry in row 3 of 3");
  CHECK(refused(csc, "shape", npy_text(int64s{3, 3})) ==
        "m.npz: expected one more entry of indptr than the 3 columns, found 5");
  const entries coo{{"format", format_npy("coo")},
                    {"shape", npy_text(int64s{3, 4})},
                    {"row", npy_text(int64s{2, 0, 2, 0})},
                    {"col", npy_text(std::vector<std::int32_t>{0, 3, 0, 1})},
                    {"data", npy_text(int64s{3, 2, 3, 1})}};
  read(coo);
  CHECK(refused(coo, "row", npy_text(int64s{2, 0, 3, 0})) == "m.npz: entry 2 is at (3, 0) of 3 x 4");
  CHECK(refused(coo, "row", npy_text(int64s{2})) == "m.npz: row has 1 entries, col has 4 and data has 4");
  CHECK(refused(coo, "format", format_npy("bsr")) ==
        "m.npz: holds a matrix in the format \"bsr\", expected csr, csc or coo");
}

TEST_CASE("npz: matrices in every type, and archives that are none") {
  const scratch folder;
  const fs::path path = folder / "m.npz";
  const auto read_with = [&](const std::string& entry, const std::string& text) {
    entries csr = small_csr();
    if (!entry.empty()) csr[entry] = text;
    write_npz(path, csr);
    std::vector<double> values;
    const std::string text_of_error = complaint(folder.dir, [&] { values = io::read_csr_npz(path).values; });
    if (text_of_error.empty()) CHECK(values == std::vector<double>{1, 2, 3, 3});
    return text_of_error;
  };
  CHECK(read_with("", "") == "");
  CHECK(read_with("format", format_npy("csr")) == "");
  CHECK(read_with("data", npy_text(std::vector<double>{1, 2, 3, 3})) == "");
  CHECK(read_with("data", npy_text(int64s{1, 2, 3, 3})) == "");
  CHECK(read_with("data", npy_text(std::vector<std::int32_t>{1, 2, 3, 3})) == "");
  CHECK(read_with("data", npy_text(bytes{1, 2, 3, 3})) == "");

  CHECK(read_with("format", format_npy("csc")) ==
        "m.npz: holds a matrix in the format \"csc\", expected csr");
  CHECK(read_with("shape", npy_text(int64s{3})) == "m.npz, entry shape: expected 2 sizes, found 1");
  CHECK(read_with("shape", npy_text(int64s{-1, 4})) == "m.npz: its shape -1 x 4 is negative");
  CHECK(read_with("shape", npy_text(int64s{5, 4})) ==
        "m.npz: expected one more entry of indptr than the 5 rows, found 4");
  CHECK(read_with("indptr", npy_text(int64s{})) ==
        "m.npz: expected one more entry of indptr than the 3 rows, found 0");
  CHECK(read_with("indptr", npy_text(int64s{0, 2, 2, 5})) ==
        "m.npz: indptr runs from 0 to 5 instead of 0 to 4");
  CHECK(read_with("indptr", npy_text(int64s{1, 2, 2, 4})) ==
        "m.npz: indptr runs from 1 to 4 instead of 0 to 4");
  CHECK(read_with("indptr", npy_text(int64s{0, 3, 2, 4})) == "m.npz: indptr decreases at row 1");
  CHECK(read_with("indptr", npy_text(std::vector<float>{0, 2, 2, 4})) ==
        "m.npz, entry indptr: expected int32 or int64 values, found float32");
  CHECK(read_with("indices", npy_text(int64s{1, 3, 4, 0})) == "m.npz: row 2 has an entry in column 4 of 4");
  CHECK(read_with("indices", npy_text(int64s{1, -3, 0, 0})) == "m.npz: row 0 has an entry in column -3 of 4");
  CHECK(read_with("indices", npy_text({2, 2}, int64s{1, 3, 0, 0})) ==
        "m.npz, entry indices: expected a vector, found the shape 2 x 2");
  CHECK(read_with("data", npy_text({2, 2}, std::vector<float>{1, 2, 3, 3})) ==
        "m.npz, entry data: expected a vector, found the shape 2 x 2");
  CHECK(read_with("data", npy_text(std::vector<float>{1})) == "m.npz: indices has 4 entries and data has 1");
  CHECK(read_with("data", format_npy("csr")) == "m.npz, entry data: expected a vector, found the shape ()");
  CHECK(read_with("data", "nonsense, not an npy_array") ==
        "m.npz, entry data: is not a .npy file (wrong magic number)");

  CHECK(read_with("data", npy_text(std::vector<float>{1, 2, 3, 3}).replace(22, 1, "c")) ==
        "m.npz, entry data: expected float32, float64, int32, int64, uint8 or bool values, found \"<c4\"");

  write_npz(path, small_csr());
  std::string damaged = read_text(path);
  damaged[damaged.find("data.npy") + 30] ^= 1;
  write_text(path, damaged);
  CHECK(complaint(folder.dir, [&] { io::read_csr_npz(path); }) == "m.npz, entry data: cannot be unpacked");

  entries csr = small_csr();
  csr.erase("indptr");
  write_npz(path, csr);
  const auto reading = [&](const char* name) {
    return complaint(folder.dir, [&] { io::read_csr_npz(folder / name); });
  };
  CHECK(reading("m.npz") == "m.npz: has no entry indptr");
  CHECK(reading("none.npz") == "none.npz: no such file");
  write_text(path, "this is text");
  CHECK(reading("m.npz") == "m.npz: is not a zip archive that can be read (Not a zip archive)");
  fs::create_directory(folder / "d.npz");
  CHECK(reading("d.npz") == "d.npz: is not a regular file");
}

TEST_CASE("npz: float64 stays float64, and rounding it is asked for") {
  const scratch folder;
  const std::vector<double> thirds{1.0 / 3, 2.0 / 3, 1e300, 3};
  entries csr = small_csr();
  csr["data"] = npy_text(thirds);
  write_npz(folder / "m.npz", csr);
  CHECK(io::read_csr_npz(folder / "m.npz").values == thirds);
  CHECK(io::read_csr_npz<float>(folder / "m.npz").values.front() == 1.0f / 3);
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

TEST_CASE("npz: damaged archives are read or refused, nothing else") {
  const scratch folder;
  const fs::path path = folder / "m.npz";
  write_npz(path, small_csr());
  const std::string whole = read_text(path);
  int refused = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const std::uint64_t word = random_key{23, static_cast<std::uint64_t>(trial), 0}.word();
    std::string text = whole;
    for (std::int64_t change = 0; change < 3; ++change)
      text[random_bits(word, change, 0) % text.size()] = static_cast<char>(random_bits(word, change, 1));
    if (trial % 4 == 0) text.resize(random_bits(word, 0, 2) % text.size());
    write_text(path, text);
    try {
      const io::csr_array<double> matrix = io::read_csr_npz(path);
      REQUIRE(matrix.columns.size() == matrix.values.size());
    } catch (const input_error&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
}
