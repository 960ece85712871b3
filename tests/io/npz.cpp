// SPDX-License-Identifier: Apache-2.0
// Sparse matrices in the archives of NumPy and SciPy, whole and damaged.
#include "partita/io/npz.hpp"

#include "partita/base/random.hpp"
#include "support/npz_files.hpp"

namespace test_npz {

using namespace test_support;

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
        "m.npz, entry indptr: expected int32, int64 or uint64 values, found float32");
  CHECK(read_with("indices", npy_text(int64s{1, 3, 4, 0})) == "m.npz: row 2 has an entry in column 4 of 4");
  CHECK(read_with("indices", npy_text(int64s{1, -3, 0, 0})) == "m.npz: row 0 has an entry in column -3 of 4");
  CHECK(read_with("indices", npy_text(std::vector<std::uint64_t>{1, 3, 0, 0})) == "");
  CHECK(read_with("indices", npy_text(std::vector<std::uint64_t>{1, 3, 0, ~std::uint64_t{0}})) ==
        "m.npz, entry indices: row 3 is 18446744073709551615, larger than 9223372036854775807");
  CHECK(read_with("indices", npy_text({2, 2}, int64s{1, 3, 0, 0})) ==
        "m.npz, entry indices: expected a vector, found the shape 2 x 2");
  CHECK(read_with("data", npy_text({2, 2}, std::vector<float>{1, 2, 3, 3})) ==
        "m.npz, entry data: expected a vector, found the shape 2 x 2");
  CHECK(read_with("data", npy_text(std::vector<float>{1})) == "m.npz: indices has 4 entries and data has 1");
  CHECK(read_with("data", format_npy("csr")) == "m.npz, entry data: expected a vector, found the shape ()");
  CHECK(read_with("data", "nonsense, not an npy_array") ==
        "m.npz, entry data: is not a .npy file (wrong magic number)");

  CHECK(read_with("data", npy_text(std::vector<float>{1, 2, 3, 3}).replace(22, 1, "c")) ==
        "m.npz, entry data: expected float, integer or bool values, found \"<c4\"");

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

TEST_CASE("npz: every type of integers") {
  const scratch folder;
  const auto check = [&]<class T>(T) {
    entries csr = small_csr();
    csr["data"] = npy_text(std::vector<T>{1, 2, 3, 3});
    write_npz(folder / "m.npz", csr);
    CHECK(io::read_csr_npz(folder / "m.npz").values == std::vector<double>{1, 2, 3, 3});
  };
  check(std::int8_t{}), check(std::int16_t{}), check(std::uint16_t{});
  check(std::uint32_t{}), check(std::uint64_t{});
}

TEST_CASE("npz: what is written is read again, from a file and from memory") {
  const scratch folder;
  const fs::path path = folder / "m.npz";
  const io::csr_array<double> matrix{3, 4, {0, 2, 2, 4}, {1, 3, 0, 0}, {1, 1.0 / 3, 3, 3}};
  io::write_csr_npz(path, matrix);
  const auto read = io::read_csr_npz(path);
  CHECK(read.rows == 3);
  CHECK(read.cols == 4);
  CHECK(read.offsets == matrix.offsets);
  CHECK(read.columns == matrix.columns);
  CHECK(read.values == matrix.values);
  const std::string text = read_text(path);
  const auto entries = io::parse_sparse_npz(std::as_bytes(std::span(text)), "m").entries;
  CHECK(entries == std::vector<triplet<double>>{{0, 1, 1}, {0, 3, 1.0 / 3}, {2, 0, 3}, {2, 0, 3}});
  io::write_csr_npz(path, io::csr_array<float>{0, 5, {0}, {}, {}});
  CHECK(io::read_sparse_npz(path).shape == matrix_shape{0, 5});
  CHECK(complaint(folder.dir, [&] {
          io::write_csr_npz(path, io::csr_array<float>{1, 5, {0, 1}, {5}, {1}});
        }) == "m.npz: row 0 has an entry in column 5 of 5");
  CHECK(complaint(folder.dir, [&] { io::write_csr_npz(folder / "none/m.npz", matrix); }) ==
        "none/m.npz: cannot be written (No such file or directory)");
  CHECK(complaint(folder.dir, [&] {
          io::parse_sparse_npz(std::as_bytes(std::span(text)).first(100), (folder / "m").string());
        }) == "m: is not a zip archive that can be read (Not a zip archive)");
}

TEST_CASE("npz: what packs well is read, and no more is unpacked than the counts call for") {
  const scratch folder;
  entries csr = small_csr();
  csr["data"] = npy_text(std::vector<float>(std::size_t{1} << 20, 1.0f));
  write_npz(folder / "m.npz", csr);
  CHECK(complaint(folder.dir, [&] { io::read_csr_npz(folder / "m.npz"); }) ==
        "m.npz: indices has 4 entries and data has 1048576");
  csr["indices"] = npy_text(std::vector<std::int32_t>(std::size_t{1} << 20, 0));
  csr["indptr"] = npy_text(std::vector<std::int32_t>{0, 1 << 20, 1 << 20, 1 << 20});
  write_npz(folder / "m.npz", csr);
  CHECK(io::read_csr_npz(folder / "m.npz").values.size() == std::size_t{1} << 20);
  const std::size_t bytes = (std::size_t{4} << 20) + 128;
  CHECK(io::read_sparse_npz(folder / "m.npz", bytes).entries.size() == std::size_t{1} << 20);
  CHECK(complaint(folder.dir, [&] { io::read_csr_features(folder / "m.npz", bytes - 1); }) ==
        "m.npz, entry indices: takes 4194432 bytes, more than 4194431 bytes, the limit of what is unpacked, "
        "which "
        "unpack_limit or --unpack-limit SIZE sets; by default it is a quarter of the free memory");
  csr["shape"] = npy_text(std::vector<std::int64_t>{3, std::int64_t{1} << 60});
  write_npz(folder / "m.npz", csr);
  CHECK(complaint(folder.dir, [&] { io::read_csr_features(folder / "m.npz"); }) ==
        "m.npz: has 1152921504606846976 features, which no model has memory for");
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
      text[base::random_bits(word, change, 0) % text.size()] =
          static_cast<char>(base::random_bits(word, change, 1));
    if (trial % 4 == 0) text.resize(base::random_bits(word, 0, 2) % text.size());
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

}  // namespace test_npz
