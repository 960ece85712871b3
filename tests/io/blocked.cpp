// SPDX-License-Identifier: Apache-2.0
// Matrices in blocks of rows, whole and damaged.
#include "partita/io/blocked.hpp"

#include "support/scratch.hpp"

namespace test_blocked {

using namespace test_support;
using sizes = std::vector<global_index>;

/// Row i has i % 5 entries.
template <class T>
io::csr_array<T> sample(global_index rows, global_index cols, bool pattern = false) {
  io::csr_array<T> a{rows, cols, {0}, {}, {}};
  for (global_index i = 0; i < rows; ++i) {
    for (global_index e = 0; e < i % 5; ++e) {
      a.columns.push_back((17 * i + 1000003 * e) % cols);
      if (!pattern) a.values.push_back(static_cast<T>(i) + static_cast<T>(1) / static_cast<T>(e + 3));
    }
    a.offsets.push_back(static_cast<global_index>(a.columns.size()));
  }
  return a;
}

template <class T>
void check_rows(const io::csr_array<T>& part, const io::csr_array<T>& whole, interval rows) {
  CHECK(part.rows == rows.size());
  CHECK(part.cols == whole.cols);
  REQUIRE(part.offsets.size() == static_cast<std::size_t>(rows.size()) + 1);
  const global_index first = whole.offsets[static_cast<std::size_t>(rows.begin)];
  for (global_index i = 0; i <= rows.size(); ++i)
    CHECK(part.offsets[static_cast<std::size_t>(i)] ==
          whole.offsets[static_cast<std::size_t>(rows.begin + i)] - first);
  for (std::size_t e = 0; e < part.columns.size(); ++e) {
    CHECK(part.columns[e] == whole.columns[static_cast<std::size_t>(first) + e]);
    CHECK(part.values[e] ==
          (whole.values.empty() ? T{1} : whole.values[static_cast<std::size_t>(first) + e]));
  }
}

template <class T>
void check_all(const io::csr_array<T>& a, const sizes& blocks) {
  const scratch folder;
  io::write_blocked(folder / "a.part", a, blocks);
  const std::string text = read_text(folder / "a.part");
  const io::blocked_file in_file(folder / "a.part"), in_memory(std::span<const char>(text), "m");
  for (const io::blocked_file* file : {&in_file, &in_memory}) {
    CHECK(file->header().shape == matrix_shape{a.rows, a.cols});
    CHECK(file->header().entries == static_cast<global_index>(a.columns.size()));
    CHECK(file->header().blocks.size() == blocks.size());
    global_index row = 0;
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      CHECK(file->header().blocks[k].rows == interval{row, row + blocks[k]});
      CHECK(file->header().blocks[k].position % 4096 == 0);
      check_rows(file->template read_block<T>(k), a, {row, row + blocks[k]});
      row += blocks[k];
    }
    for (const interval rows :
         {interval{0, a.rows}, interval{a.rows / 3, a.rows / 2}, interval{a.rows, a.rows}})
      check_rows(file->template read_rows<T>(rows), a, rows);
  }
}

TEST_CASE("blocked files: blocks and rows, of every type, of any sizes") {
  check_all(sample<double>(53, 40), {10, 0, 23, 20});
  check_all(sample<float>(53, 40), {53});
  check_all(sample<double>(53, 40, true), {1, 52});
  check_all(sample<float>(53, global_index{1} << 40), {26, 27});
  check_all(io::csr_array<double>{0, 7, {0}, {}, {}}, {});
  check_all(io::csr_array<double>{3, 0, {0, 0, 0, 0}, {}, {}}, {0, 1, 2});
}

TEST_CASE("blocked files: values are converted, columns are small where they fit") {
  const scratch folder;
  const auto a = sample<double>(10, 7);
  io::write_blocked(folder / "a.part", a, sizes{10});
  const io::blocked_file file(folder / "a.part");
  CHECK(file.header().column_bytes == 4);
  CHECK(file.header().value_bytes == 8);
  CHECK(file.read_block<float>(0).values.back() == static_cast<float>(a.values.back()));
  CHECK(complaint(folder.dir, [&] {
          file.read_rows({3, 11});
        }) == "a.part: rows 3 to 11 were requested, but it has 10 rows");
}

TEST_CASE("blocked files: what is not written") {
  const scratch folder;
  const auto refused = [&](const io::csr_array<double>& a, const sizes& blocks) {
    CHECK_THROWS_AS(io::write_blocked(folder / "a.part", a, blocks), shape_error);
    CHECK(!fs::exists(folder / "a.part"));
  };
  refused(sample<double>(10, 7), {9});
  refused(sample<double>(10, 7), {11});
  refused(sample<double>(10, 7), {11, -1});
  refused({2, 2, {0, 1, 1}, {2}, {1}}, {2});
  refused({2, 2, {0, 1}, {1}, {1}}, {2});
  refused({2, 2, {0, 2, 1}, {1}, {1}}, {2});
  refused({2, 2, {0, 1, 2}, {1, 1}, {1}}, {2});
  CHECK(complaint(folder.dir, [&] {
          io::write_blocked(folder / "none/a.part", sample<double>(10, 7), sizes{10});
        }) == "none/a.part: cannot be written (No such file or directory)");
}

TEST_CASE("blocked files: any bit that is changed is found, and the block named; the others are read") {
  const scratch folder;
  const auto a = sample<double>(30, 7);
  io::write_blocked(folder / "a.part", a, sizes{10, 12, 8});
  const std::string whole = read_text(folder / "a.part");
  const io::blocked_header header = io::blocked_file(folder / "a.part").header();
  const auto refused = [&](const std::string& text, std::size_t k) {
    return complaint(folder.dir,
                     [&] { io::blocked_file(std::span<const char>(text), folder / "a.part").read_block(k); });
  };
  const std::size_t header_size = 56 + 3 * 40 + 4;
  for (std::size_t bit = 0; bit < 8 * header_size; ++bit) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    CHECK(refused(text, 0).starts_with("a.part: "));
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const auto begin = static_cast<std::size_t>(header.blocks[k].position);
    for (std::size_t at = begin; at < begin + 100; ++at) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ (1 << at % 8));
      for (std::size_t other = 0; other < 3; ++other) {
        const std::string rows = k == 0 ? "0 to before 10" : k == 1 ? "10 to before 22" : "22 to before 30";
        CHECK(refused(text, other) == (other == k
                                           ? "a.part: block " + std::to_string(k) + " with the rows from " +
                                                 rows + " is damaged (wrong checksum)"
                                           : ""));
      }
    }
  }
}

TEST_CASE("blocked files: those that are cut off, and those that are none") {
  const scratch folder;
  io::write_blocked(folder / "a.part", sample<double>(30, 7), sizes{10, 20});
  const std::string whole = read_text(folder / "a.part");
  const auto refused = [&](const std::string& text) {
    write_text(folder / "b.part", text);
    return complaint(folder.dir, [&] { io::blocked_file(folder / "b.part"); });
  };
  CHECK(refused(whole) == "");
  CHECK(refused("") == "b.part: is not a blocked matrix (wrong magic number)");
  CHECK(refused(whole.substr(0, 40)) == "b.part: is cut off: its header does not end within its 40 bytes");
  CHECK(refused(whole.substr(0, 70)) ==
        "b.part: its header is damaged, or it is cut off: it has no room for 2 blocks");
  CHECK(refused(whole.substr(0, 100)) == "b.part: is cut off: its header does not end within its 100 bytes");
  CHECK(refused(whole.substr(0, 5000)) ==
        "b.part: is cut off: block 1 with the rows from 10 to before 30 does not end within its 5000 bytes");
  CHECK(refused(whole.substr(0, whole.size() - 1)).starts_with("b.part: is cut off: block 1 "));
  CHECK(complaint(folder.dir, [&] { io::blocked_file(folder / "none.part"); }) == "none.part: no such file");
}

/// The file with a word of its header changed and the checksum made right again.
std::string forged(std::string text, std::size_t at, std::int64_t value, std::size_t blocks) {
  std::memcpy(text.data() + at, &value, sizeof value);
  const std::size_t checked = 56 + blocks * 40;
  const std::uint32_t sum = io::crc32c(std::as_bytes(std::span(text).first(checked)));
  std::memcpy(text.data() + checked, &sum, sizeof sum);
  return text;
}

TEST_CASE("blocked files: headers that lie") {
  const scratch folder;
  io::write_blocked(folder / "a.part", sample<double>(30, 7), sizes{10, 20});
  const std::string whole = read_text(folder / "a.part");
  for (const std::size_t at : {24, 32, 40, 56, 64, 72, 80, 96, 104, 112, 120})
    for (const std::int64_t value :
         {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40, std::int64_t{1} << 62}) {
      const std::string text = forged(whole, at, value, 2);
      const std::string said = complaint(folder.dir, [&] {
        const io::blocked_file file(std::span<const char>(text), folder / "a.part");
        file.read_block(0), file.read_block(1);
      });
      if (at != 32 || value < 7) CHECK(said.starts_with("a.part: "));
    }
}

}  // namespace test_blocked
