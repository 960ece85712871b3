// SPDX-License-Identifier: Apache-2.0
// Mapped files, against read_npy.
#include "partita/io/mapped_npy.hpp"

#include "support/scratch.hpp"

namespace test_io_mapped_npy {

using namespace test_support;

/// The first values of a type, of either sign where it has two.
template <class T>
std::vector<T> values_of(std::size_t count) {
  std::vector<T> values;
  for (std::size_t k = 0; k < count; ++k) values.push_back(static_cast<T>(static_cast<long>(k) * 7 - 100));
  for (T& v : values)
    if (sizeof(T) == 1) v = static_cast<T>(&v - values.data());
  return values;
}

/// Checks that mapping gives what reading gives; returns whether the file is mapped.
template <class T>
bool is_mapped_as_read(const fs::path& path) {
  const io::npy_array<T> read = io::read_npy<T>(path);
  const io::mapped_array<T> mapped = io::map_npy<T>(path);
  CHECK(mapped.shape == read.shape);
  CHECK(mapped.values == io::array<T>(read.values));
  return mapped.values.is_mapped();
}

/// A file whose header is `header`, then `data`.
void write_npy_text(const fs::path& path, const std::string& header, const std::string& data) {
  const std::string dictionary = header + "\n";
  std::string text = "\x93NUMPY" + std::string{1, 0};
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  write_text(path, text + dictionary + data);
}

std::string header(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// The header with blanks behind it, so that data begins at a multiple of 8 plus `offset`.
std::string aligned(std::string dictionary, std::size_t offset) {
  while ((10 + dictionary.size() + 1) % 8 != offset) dictionary += ' ';
  return dictionary;
}

TEST_CASE_TEMPLATE("mapped_npy: the values of read_npy", T, float, double, std::int64_t, std::int32_t,
                   std::uint8_t) {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  for (const std::vector<global_index>& shape : {std::vector<global_index>{12}, {3, 4}, {2, 3, 2}, {1}, {}}) {
    std::size_t count = 1;
    for (const global_index extent : shape) count *= static_cast<std::size_t>(extent);
    io::write_npy(path, shape, values_of<T>(count));
    CHECK(is_mapped_as_read<T>(path));
  }
  for (const std::vector<global_index>& empty : {std::vector<global_index>{0}, {0, 3}, {3, 0}}) {
    io::write_npy(path, empty, std::vector<T>());
    CHECK_FALSE(is_mapped_as_read<T>(path));
  }
}

TEST_CASE("mapped_npy: Fortran order is read, where it makes a difference") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  const std::string bytes = "abcdef";
  write_npy_text(path, header("|u1", "True", "(2, 3)"), bytes);
  CHECK_FALSE(is_mapped_as_read<std::uint8_t>(path));
  const std::vector<std::uint8_t> by_rows{'a', 'c', 'e', 'b', 'd', 'f'};
  CHECK(io::map_npy<std::uint8_t>(path).values == io::array<std::uint8_t>(by_rows));
  write_npy_text(path, header("|u1", "True", "(6,)"), bytes);
  CHECK(is_mapped_as_read<std::uint8_t>(path));
  write_npy_text(path, header("|b1", "False", "(6,)"), std::string("\1\0\0\1\1\0", 6));
  CHECK(is_mapped_as_read<std::uint8_t>(path));
}

TEST_CASE("mapped_npy: data at any offset") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  const std::vector<double> values = values_of<double>(5);
  const std::string data(reinterpret_cast<const char*>(values.data()), 40);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    write_npy_text(path, aligned(header("<f8", "False", "(5,)"), offset), data);
    CHECK(is_mapped_as_read<double>(path) == (offset == 0));
    write_npy_text(path, aligned(header("<f4", "False", "(10,)"), offset), data);
    CHECK(is_mapped_as_read<float>(path) == (offset % 4 == 0));
    write_npy_text(path, aligned(header("|u1", "False", "(40,)"), offset), data);
    CHECK(is_mapped_as_read<std::uint8_t>(path));
  }
}

TEST_CASE("mapped_npy: what is damaged is refused with the sentence of read_npy") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  io::write_npy(path, {7, 3}, values_of<double>(21));
  const std::string whole = read_text(path);
  const auto check_refused = [&] {
    const std::string said = complaint(folder.dir, [&] { io::map_npy<double>(path); });
    CHECK(said == complaint(folder.dir, [&] { io::read_npy<double>(path); }));
    CHECK(said != "");
  };
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{9}, std::size_t{40}, whole.size() - 21 * 8, whole.size() - 1}) {
    write_text(path, whole.substr(0, length));
    check_refused();
  }
  write_text(path, whole + "x");
  check_refused();
  io::write_npy(path, {2}, std::vector<std::int64_t>{1, 2});  // another type
  check_refused();
  fs::remove(path);
  check_refused();
  fs::create_directory(path);
  check_refused();
}

TEST_CASE("mapped_npy: forgotten values are read again, by copies too, and the file may go") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  const std::vector<std::int64_t> values = values_of<std::int64_t>(5000);  // several pages
  io::write_npy(path, {5000}, values);
  io::array<std::int64_t> mapped = io::map_npy<std::int64_t>(path).values;
  REQUIRE(mapped.is_mapped());
  const io::array<std::int64_t> copy = mapped;
  CHECK(copy.data() == mapped.data());
  CHECK(mapped == io::array<std::int64_t>(values));
  mapped.forget();
  CHECK(mapped == io::array<std::int64_t>(values));
  mapped.forget();
  CHECK(copy[4999] == values[4999]);
  fs::remove(path);
  mapped = {};
  copy.forget();
  CHECK(copy == io::array<std::int64_t>(values));
}

TEST_CASE("mapped_npy: changes stay in memory") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  io::write_npy(path, {3}, std::vector<float>{1, 2, 3});
  const std::string before = read_text(path);
  const io::array<float> untouched = io::map_npy<float>(path).values;
  io::array<float> changed = untouched;
  changed.edit()[1] = 5;
  changed.push_back(7);
  CHECK_FALSE(changed.is_mapped());
  CHECK(changed == io::array<float>{1, 5, 3, 7});
  CHECK(untouched == io::array<float>{1, 2, 3});
  CHECK(read_text(path) == before);
}

}  // namespace test_io_mapped_npy
