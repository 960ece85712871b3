// SPDX-License-Identifier: Apache-2.0
#include "partita/io/npy.hpp"

#include "partita/base/random.hpp"
#include "support/scratch.hpp"

namespace test_io_npy {

using namespace test_support;

/// A .npy file of the given format version with `dictionary` as its header.
std::string npy(const std::string& dictionary, const std::string& data = "", int version = 1) {
  std::string length;
  for (int k = 0; k < (version == 1 ? 2 : 4); ++k)
    length += static_cast<char>(k < 2 ? dictionary.size() >> (8 * k) & 255 : 0);
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + length + dictionary + data;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// What parse_npy<T> says about `text`, and that read_npy<T> says the same about a file of these bytes.
template <class T>
std::string complaint(const std::string& text) {
  scratch folder;
  const fs::path path = folder / "x.npy";
  write_text(path, text);
  const std::string from_file = [&] {
    try {
      io::read_npy<T>(path);
      return std::string();
    } catch (const input_error& e) {
      return std::string(e.what());
    }
  }();
  try {
    io::parse_npy<T>(std::as_bytes(std::span(text)), path.string());
    CHECK(from_file == "");
    return "";
  } catch (const input_error& e) {
    CHECK(from_file == e.what());
    return from_file.substr(folder.dir.string().size() + 1);
  }
}

TEST_CASE_TEMPLATE("npy: what is written is read", T, float, double, std::int64_t, std::int32_t,
                   std::uint8_t) {
  scratch folder;
  const fs::path path = folder / "x.npy";
  for (const std::vector<global_index>& shape :
       std::vector<std::vector<global_index>>{{},
                                              {1},
                                              {7},
                                              {0},
                                              {3, 4},
                                              {5, 0},
                                              {0, 5},
                                              {2, 3, 4},
                                              {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}) {
    CAPTURE(shape.size());
    std::size_t count = 1;
    for (global_index extent : shape) count *= static_cast<std::size_t>(extent);
    std::vector<T> values(count);
    for (std::size_t k = 0; k < count; ++k) values[k] = static_cast<T>(3 * k + 1);
    if (count > 1) values[1] = std::numeric_limits<T>::max();
    if (count > 2) values[2] = std::numeric_limits<T>::lowest();
    io::write_npy(path, shape, values);
    const io::npy_array<T> back = io::read_npy<T>(path);
    CHECK(back.shape == shape);
    CHECK(back.values == values);
    CHECK(back.rows() == (shape.empty() ? 1 : shape[0]));
    CHECK(back.rows() * back.cols() == static_cast<global_index>(count));

    const io::npy_header header = io::read_npy_header(path);
    CHECK(header.data_offset % 64 == 0);
    CHECK(header.item_size == sizeof(T));
    CHECK(header.count() == static_cast<global_index>(count));
    CHECK_FALSE(header.fortran_order);
  }
}

TEST_CASE("npy: headers of every version and spelling") {
  const std::vector<std::int64_t> values{1, -2, 3, 4, 5, 6};
  const std::string data = bytes_of(values);
  for (const std::string& text :
       {npy(dictionary("<i8", "(3, 2)"), data, 1), npy(dictionary("<i8", "(3, 2)"), data, 2),
        npy(dictionary("<i8", "(3, 2)"), data, 3), npy(dictionary("<i8", "(3L, 2L,)"), data),
        npy("{\"shape\":(3,2),\"fortran_order\":False,\"descr\":\"<i8\"}", data)}) {
    const io::npy_array<std::int64_t> a = io::parse_npy<std::int64_t>(std::as_bytes(std::span(text)), "x");
    CHECK(a.shape == std::vector<global_index>{3, 2});
    CHECK(a.values == values);
  }
  const std::string flags = npy(dictionary("|b1", "(2,)"), std::string("\1\0", 2));
  CHECK(io::parse_npy<std::uint8_t>(std::as_bytes(std::span(flags)), "x").values ==
        std::vector<std::uint8_t>{1, 0});
}

TEST_CASE("npy: two dimensions in Fortran order are turned round, three are refused") {
  scratch folder;
  const std::string text =
      npy(dictionary("<i4", "(2, 3)", "True"), bytes_of<std::int32_t>({1, 4, 2, 5, 3, 6}));
  write_text(folder / "x.npy", text);
  CHECK(io::parse_npy<std::int32_t>(std::as_bytes(std::span(text)), "x").values ==
        std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(io::read_npy<std::int32_t>(folder / "x.npy").values == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(io::read_npy_rows<std::int32_t>(folder / "x.npy", {1, 2}).values ==
        std::vector<std::int32_t>{4, 5, 6});
  CHECK(complaint<std::uint8_t>(npy(dictionary("|u1", "(1, 1, 2)", "True"), "ab")) ==
        "x.npy: is in Fortran order with 3 dimensions, which is read for two at most");
}

TEST_CASE("npy: rows of a file") {
  scratch folder;
  std::vector<double> values(35);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k) / 7;
  io::write_npy(folder / "m.npy", {7, 5}, values);
  io::write_npy(folder / "v.npy", {35}, values);
  io::write_npy(folder / "s.npy", {}, std::vector<double>{1});
  for (global_index begin = 0; begin <= 7; ++begin)
    for (global_index end = begin; end <= 7; ++end) {
      const io::npy_array<double> rows = io::read_npy_rows<double>(folder / "m.npy", {begin, end});
      CHECK(rows.shape == std::vector<global_index>{end - begin, 5});
      CHECK(rows.values == std::vector<double>(values.begin() + 5 * begin, values.begin() + 5 * end));
    }
  CHECK(io::read_npy_rows<double>(folder / "v.npy", {33, 35}).values ==
        std::vector<double>{33. / 7, 34. / 7});
  const auto rows = [&](const char* file, interval range) {
    return test_support::complaint(folder.dir, [&] { io::read_npy_rows<double>(folder / file, range); });
  };
  CHECK(rows("m.npy", {3, 8}) == "m.npy: rows 3 to 8 were requested, but it has 7 rows");
  CHECK(rows("m.npy", {-1, 2}) == "m.npy: rows -1 to 2 were requested, but it has 7 rows");
  CHECK(rows("m.npy", {4, 3}) == "m.npy: rows 4 to 3 were requested, but it has 7 rows");
  CHECK(rows("s.npy", {0, 1}) == "s.npy: rows 0 to 1 were requested, but it has 0 rows");
}

TEST_CASE("npy: a file of another type") {
  const std::string eight(8, '\0');
  CHECK(complaint<std::int64_t>(npy(dictionary("<f4", "(2,)"), eight)) ==
        "x.npy: expected int64 values, found float32");
  CHECK(complaint<float>(npy(dictionary("<f8", "(1,)"), eight)) ==
        "x.npy: expected float32 values, found float64");
  CHECK(complaint<std::int32_t>(npy(dictionary("<u4", "(2,)"), eight)) ==
        "x.npy: expected int32 values, found uint32");
  CHECK(complaint<std::int64_t>(npy(dictionary("<i4", "(2,)"), eight)) ==
        "x.npy: expected int64 values, found int32, which .astype(\"int64\") of the array makes");
  CHECK(complaint<double>(npy(dictionary("|b1", "(8,)"), eight)) ==
        "x.npy: expected float64 values, found bool");
  CHECK(complaint<std::uint8_t>(npy(dictionary("|S8", "(1,)"), eight)) ==
        "x.npy: expected uint8 values, found \"|S8\"");
  CHECK(complaint<std::int64_t>(npy(dictionary(">i8", "(1,)"), eight)) ==
        "x.npy: holds big-endian values (>i8), only little-endian ones are read");
  CHECK(complaint<float>(npy(dictionary("|O", "(1,)"), eight)) ==
        "x.npy: holds values of the type \"|O\", which cannot be read");
  CHECK(complaint<float>(npy(dictionary("<M8[ns]", "(1,)"), eight)) ==
        "x.npy: holds values of the type \"<M8[ns]\", which cannot be read");
  CHECK(complaint<float>(npy(dictionary("<f0", "(1,)"), eight)) ==
        "x.npy: holds values of the type \"<f0\", which cannot be read");
}

TEST_CASE("npy: truncated files") {
  const std::string whole = npy(dictionary("<i8", "(2, 2)"), std::string(32, 'x'));
  const std::string offset = std::to_string(whole.size() - 32);
  CHECK(complaint<std::int64_t>(whole) == "");
  CHECK(complaint<std::int64_t>("") == "x.npy: truncated header, expected 10 bytes or more, found 0");
  CHECK(complaint<std::int64_t>(whole.substr(0, 9)) ==
        "x.npy: truncated header, expected 10 bytes or more, found 9");
  CHECK(complaint<std::int64_t>(whole.substr(0, 30)) ==
        "x.npy: truncated header, expected " + offset + " bytes, found 30");
  CHECK(complaint<std::int64_t>(npy("", "", 2).substr(0, 11)) ==
        "x.npy: truncated header, expected 12 bytes or more, found 11");
  CHECK(complaint<std::int64_t>(whole.substr(0, whole.size() - 3)) ==
        "x.npy: expected 32 bytes of data for its shape 2 x 2, found 29");
  CHECK(complaint<std::int64_t>(whole + 'x') ==
        "x.npy: expected 32 bytes of data for its shape 2 x 2, found 33");
  CHECK(complaint<std::int64_t>(npy(dictionary("<i8", "(3,)"))) ==
        "x.npy: expected 24 bytes of data for its shape (3,), found 0");
  CHECK(complaint<std::int64_t>(npy(dictionary("<i8", "()"))) ==
        "x.npy: expected 8 bytes of data for its shape (), found 0");
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(complaint<std::int64_t>(whole.substr(0, size)) != "");
}

TEST_CASE("npy: malformed headers") {
  CHECK(complaint<float>("PK\3\4 not at all a npy file") == "x.npy: is not a .npy file (wrong magic number)");
  CHECK(complaint<float>(npy("{}", "", 4)) == "x.npy: has the unknown .npy format version 4");
  CHECK(complaint<float>(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)) ==
        "x.npy: its header claims 4294967295 bytes, more than the limit of 1 MiB");

  const std::string keys =
      "x.npy: malformed header, expected the keys descr, fortran_order and shape, once each";
  CHECK(complaint<float>(npy("{}")) == keys);
  CHECK(complaint<float>(npy("{'descr': '<f4', 'shape': (1,)}")) == keys);
  CHECK(complaint<float>(npy("{'descr': '<f4', 'descr': '<f4'}")) == keys);
  CHECK(complaint<float>(npy("{'price': 3}")) == keys);
  CHECK(complaint<float>(npy("")) == "x.npy: malformed header, expected '{' at byte 0 of its dictionary");
  CHECK(complaint<float>(npy("{'descr': '<f4'")) ==
        "x.npy: malformed header, expected '}' at byte 15 of its dictionary");
  CHECK(complaint<float>(npy("{'descr")) ==
        "x.npy: malformed header, expected a quoted string at byte 2 of its dictionary");
  CHECK(complaint<float>(npy("{'descr': [('a', '<f4')]")) ==
        "x.npy: malformed header, expected a quoted string at byte 10 of its dictionary");
  CHECK(complaint<float>(npy(dictionary("<f4", "(1,)", "0"))) ==
        "x.npy: malformed header, expected True or False for fortran_order");
  CHECK(complaint<float>(npy(dictionary("<f4", "(1,)") + "x")) ==
        "x.npy: malformed header, expected nothing after the dictionary");
  CHECK(complaint<float>(npy(dictionary("<f4", "(a,)"))) ==
        "x.npy: malformed header, expected whole numbers in its shape");
}

TEST_CASE("npy: absurd shapes are refused before anything is allocated") {
  CHECK(complaint<float>(npy(dictionary("<f4", "(3, -4)"))) == "x.npy: its shape has the negative size -4");
  CHECK(complaint<float>(npy(dictionary("<f4", "(99999999999999999999,)"))) ==
        "x.npy: its shape does not fit into 64 bits");
  CHECK(complaint<float>(npy(dictionary("<f4", "(4294967296, 4294967296)"))) ==
        "x.npy: its shape 4294967296 x 4294967296 is too large");
  CHECK(complaint<float>(npy(dictionary("<f4", "(0, 4611686018427387904)"))) ==
        "x.npy: its shape 0 x 4611686018427387904 is too large");
  CHECK(complaint<float>(npy(dictionary("<f4", "(1000000000000,)"), "abcd")) ==
        "x.npy: expected 4000000000000 bytes of data for its shape (1000000000000,), found 4");
  std::string ones = "(";
  for (int k = 0; k < 65; ++k) ones += "1,";
  CHECK(complaint<std::uint8_t>(npy(dictionary("|u1", ones + ")"), "x")) ==
        "x.npy: its shape has too many dimensions");
}

TEST_CASE("npy: files that cannot be opened or written") {
  scratch folder;
  fs::create_directory(folder / "d.npy");
  const auto reading = [&](const char* name) {
    return test_support::complaint(folder.dir, [&] { io::read_npy<float>(folder / name); });
  };
  CHECK(reading("none.npy") == "none.npy: no such file");
  CHECK(reading("d.npy") == "d.npy: is not a regular file");
  const auto writing = [&](const char* name, const std::vector<global_index>& shape) {
    return test_support::complaint(folder.dir,
                                   [&] { io::write_npy(folder / name, shape, std::vector<float>(6)); });
  };
  CHECK(writing("none/x.npy", {6}) == "none/x.npy: cannot be written");
  CHECK(writing("x.npy", {2, 4}) == "x.npy: expected 32 bytes of data for its shape 2 x 4, found 24");
  CHECK(writing("x.npy", {-6}) == "x.npy: its shape has the negative size -6");
  CHECK_FALSE(fs::exists(folder / "x.npy"));
}

TEST_CASE("npy: damaged bytes are read or refused, nothing else") {
  scratch folder;
  io::write_npy(folder / "x.npy", {3, 2}, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  const std::string whole = read_text(folder / "x.npy");
  const std::string hints = "0123456789-,()'{}:<>|fiuTF \n\xff";
  for (const std::string& start :
       {whole, npy(dictionary("<i8", "(3, 2)"), whole.substr(whole.size() - 48), 2)}) {
    int refused = 0;
    for (int trial = 0; trial < 20000; ++trial) {
      std::string text = start;
      auto draw = [word = random_key{17, static_cast<std::uint64_t>(trial), 0}.word(),
                   k = std::int64_t{0}](std::size_t bound) mutable {
        return static_cast<std::size_t>(base::random_bits(word, k++, 0) % bound);
      };
      for (std::size_t change = 1 + draw(4); change-- > 0;) {
        const std::size_t at =
            draw(2) == 0 ? draw(std::min<std::size_t>(text.size(), 70)) : draw(text.size());
        switch (draw(4)) {
          case 0:
            text[at] = static_cast<char>(draw(256));
            break;
          case 1:
            text[at] = hints[draw(hints.size())];
            break;
          case 2:
            text.insert(at, 1, hints[draw(hints.size())]);
            break;
          case 3:
            text.erase(at, 1 + draw(3));
            break;
        }
      }
      // An own buffer of exactly this size, so that a sanitizer sees any step beyond it.
      const std::vector<char> exact(text.begin(), text.end());
      try {
        const io::npy_array<std::int64_t> a =
            io::parse_npy<std::int64_t>(std::as_bytes(std::span(exact)), "x");
        REQUIRE(a.rows() * a.cols() == static_cast<global_index>(a.values.size()));
      } catch (const input_error&) {
        ++refused;
      }
    }
    CHECK(refused > 10000);
  }
}

}  // namespace test_io_npy
