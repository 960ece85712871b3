// SPDX-License-Identifier: Apache-2.0
// Labels of data sets: what they may be, and what is refused.
#include "partita/io/label_numbers.hpp"

#include "support/small_dataset.hpp"

namespace test_label_numbers {

using namespace test_support;

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST_CASE("dataset: labels that are texts or of another type are named, and one-hot rows are noted") {
  const small_dataset folder;
  const auto typed = [&](const std::string& descr, std::size_t bytes) {
    const std::string dictionary =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (4,), }" + std::string(40, ' ') + "\n";
    std::ofstream(folder / "labels.npy", std::ios::binary)
        << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(dictionary.size()) << '\0' << dictionary
        << std::string(4 * bytes, '\0');
    return folder.complaint();
  };
  for (const char* const text : {"<U1", "|S4"})
    CHECK(typed(text, 4) ==
          "labels.npy: holds texts, expected whole numbers such as int64, classes from 0, which "
          "numpy.unique(labels, return_inverse=True)[1] makes of texts");
  CHECK(typed("<f2", 2) == "labels.npy: holds float16, expected whole numbers such as int64, classes from 0");
  CHECK(typed("<c8", 8) == "labels.npy: holds \"<c8\", expected whole numbers such as int64, classes from 0");
  CHECK(typed(">i8", 8) == "labels.npy: holds big-endian values (>i8), only little-endian ones are read");
  const auto notes = [&](const int64s& matrix) {
    io::write_npy(folder / "labels.npy", {4, 2}, matrix);
    return io::load_dataset(folder.dir).notes;
  };
  CHECK(notes({0, 1, 1, 0, 0, 1, 1, 0}) ==
        std::vector<std::string>{"each row of labels.npy has one 1, and is read as the several labels that a "
                                 "vertex may have; labels.argmax(1) makes classes"});
  CHECK(notes({0, 1, 1, 0, 0, 0, 1, 0}).empty());
  CHECK(notes({0, 1, 1, 0, 1, 1, 1, 0}).empty());
}

TEST_CASE("dataset: labels that cannot be used") {
  const small_dataset folder;
  const auto labels = [&](const std::vector<global_index>& shape, const int64s& values) {
    io::write_npy(folder / "labels.npy", shape, values);
    return folder.complaint();
  };
  CHECK(labels({4}, {0, 1, -2, 1}) ==
        "labels.npy: label -2 of vertex 2 is outside the classes, of which there are at most as many as "
        "vertices");
  CHECK(labels({4}, {0, 1, -1, 999999}) ==
        "labels.npy: label 999999 of vertex 3 is outside the classes, of which there are at most as many as "
        "vertices");
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
  const auto as = [&](std::optional<io::task> task) {
    return complaint(
        folder.dir, [&] { io::load_dataset(folder.dir, io::vertex_data::features_and_labels, 0, {}, task); });
  };
  io::write_npy(folder / "labels.npy", {4, 1}, std::vector<float>{0, 1, 0.5, 1});
  CHECK(as(io::task::classes) ==
        "labels.npy: the label of vertex 2 is 0.500000, expected a class, a whole number from 0, or -1 for "
        "none; labels.astype(int64) makes classes of numbers");
  io::write_npy(folder / "labels.npy", {4}, std::vector<float>{0, std::nanf(""), 1, 1});
  CHECK(as(io::task::classes) ==
        "labels.npy: label nan or -1 of vertex 1 means none, but the split of that vertex is 2");
  io::write_npy(folder / "labels.npy", {4, 2}, std::vector<float>{0, 1, 0.5, 1, 0, 0, 0, 0});
  CHECK(as(io::task::labels) == "labels.npy: entry 0 of row 1 is 0.500000, expected 0 or 1");
  CHECK(as(io::task::classes) ==
        "labels.npy: expected one class for each vertex, found the shape 4 x 2; labels.argmax(1) makes "
        "classes");
  io::write_npy(folder / "labels.npy", {4, 2}, std::vector<float>{0, 1, 0, 1, 0, -infinity, 0, 0});
  CHECK(folder.complaint() ==
        "labels.npy: value 1 of vertex 2 is -inf, expected a finite number, or nan for none");
}

TEST_CASE("dataset: floats are values, and other numbers are where that is asked for") {
  const small_dataset folder;
  const double nan = std::nan("");
  io::write_npy(folder / "labels.npy", {4, 2}, std::vector<double>{0.5, 1, nan, 1, 0, -2, 1, 0});
  const io::dataset data = io::load_dataset(folder.dir);
  CHECK(data.task == io::task::values);
  CHECK(data.classes == 2);
  CHECK(data.values[5] == -2);
  CHECK(std::isnan(data.values[2]));
  CHECK(data.labels.empty());
  CHECK(data.notes ==
        std::vector<std::string>{"labels.npy holds float64: its numbers are values to be predicted; "
                                 "labels.astype(int64) makes classes of whole ones"});
  io::write_npy(folder / "labels.npy", {4}, int64s{7, -1, 3, 9});
  const auto read = [&](std::optional<io::task> task) {
    return io::load_dataset(folder.dir, io::vertex_data::features_and_labels, 0, {}, task);
  };
  CHECK(read(io::task::values).values == std::vector<double>{7, -1, 3, 9});
  CHECK(read(io::task::values).classes == 1);
  io::write_npy(folder / "labels.npy", {4}, int64s{0, 1, 1, 0});
  CHECK(read(io::task::labels).label_matrix == bytes{0, 1, 1, 0});
}

}  // namespace test_label_numbers
