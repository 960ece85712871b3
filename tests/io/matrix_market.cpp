// SPDX-License-Identifier: Apache-2.0
// Matrix Market files: corner cases by hand, refusals with file and line, any number of threads, damage.
#include "partita/io/matrix_market.hpp"

#include <cmath>

#include "partita/base/random.hpp"
#include "support/scratch.hpp"

namespace test_matrix_market {

using namespace test_support;
using entries = std::vector<triplet<double>>;

const std::string banner = "%%MatrixMarket matrix ", general = banner + "coordinate real general\n";

template <class T = double>
io::market_matrix<T> parse(const std::string& text, int threads = 1) {
  return io::parse_matrix_market<T>(text, "m.mtx", threads);
}

template <class T = double>
std::string refused(const std::string& text) {
  std::string first;
  for (const int threads : {1, 2, 5}) {
    std::string said;
    try {
      parse<T>(text, threads);
    } catch (const input_error& e) {
      said = e.what();
    }
    if (threads == 1) first = said;
    CHECK(said == first);
  }
  return first;
}

bool same_bits(const entries& a, const entries& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

TEST_CASE("Matrix Market: coordinates of every field and symmetry") {
  const auto real =
      parse(general + "% a comment\n\n 2\t3 4 \n1 1 1.5\n%\n2 3 -2e-1\n  \n\t1 2\t+.5\r\n2 3 4.");
  CHECK(real.shape == matrix_shape{2, 3});
  CHECK(real.symmetry == io::market_symmetry::general);
  CHECK(real.entries == entries{{0, 0, 1.5}, {1, 2, -0.2}, {0, 1, 0.5}, {1, 2, 4}});
  CHECK(parse("%%matrixmarket MATRIX\tCoordinate DOUBLE General \r\n1 1 1\r\n1 1 7\r\n").entries ==
        entries{{0, 0, 7}});
  CHECK(parse(banner + "coordinate pattern general\n2 2 2\n1 2\n2 1").entries ==
        entries{{0, 1, 1}, {1, 0, 1}});
  const auto symmetric = parse(banner + "coordinate integer symmetric\n3 3 3\n2 1 -4\n3 3 5\n1 3 6\n");
  CHECK(symmetric.symmetry == io::market_symmetry::symmetric);
  CHECK(symmetric.entries == entries{{1, 0, -4}, {0, 1, -4}, {2, 2, 5}, {0, 2, 6}, {2, 0, 6}});
  CHECK(parse(banner + "coordinate real skew-symmetric\n3 3 1\n3 1 2\n").entries ==
        entries{{2, 0, 2}, {0, 2, -2}});
  CHECK(parse(general + "0 0 0\n").shape == matrix_shape{0, 0});
  CHECK(parse(general + "5 7 0").entries.empty());
  CHECK(parse<std::int64_t>(banner + "coordinate integer general\n9223372036854775807 1 1\n"
                                     "9223372036854775807 1 -9223372036854775808\n")
            .entries == std::vector<triplet<std::int64_t>>{
                            {9223372036854775806, 0, std::numeric_limits<std::int64_t>::min()}});
}

TEST_CASE("Matrix Market: what SciPy reads besides") {
  const std::string one = "1 1 1\n1 1 7\n";
  for (const std::string first : {"%MatrixMarket matrix coordinate real general\n",
                                  "\xef\xbb\xbf%%MatrixMarket matrix coordinate real general\n",
                                  " %%MatrixMarket\tMATRIX Coordinate Unsigned-Integer general\r\n"})
    CHECK(parse(first + one).entries == entries{{0, 0, 7}});
  CHECK(parse(banner + "coordinate unsigned-integer general\n1 1 1\n1 1 18446744073709551615\n").entries ==
        entries{{0, 0, 0x1p64}});
  CHECK(parse(banner + "coordinate real skew-symmetric\n3 3 3\n1 1 0\n2 1 5\n3 1 2\n").entries ==
        entries{{1, 0, 5}, {0, 1, -5}, {2, 0, 2}, {0, 2, -2}});
}

TEST_CASE("Matrix Market: arrays go column by column") {
  CHECK(parse(banner + "array real general\n%\n2 2\n1\n 2 \n\n3\r\n% between\n4").entries ==
        entries{{0, 0, 1}, {1, 0, 2}, {0, 1, 3}, {1, 1, 4}});
  CHECK(parse(banner + "array integer symmetric\n3 3\n11\n21\n31\n22\n32\n33\n").entries ==
        entries{{0, 0, 11},
                {1, 0, 21},
                {2, 0, 31},
                {1, 1, 22},
                {2, 1, 32},
                {2, 2, 33},
                {0, 1, 21},
                {0, 2, 31},
                {1, 2, 32}});
  CHECK(parse(banner + "array real skew-symmetric\n3 3\n21\n31\n32\n").entries ==
        entries{{1, 0, 21}, {2, 0, 31}, {2, 1, 32}, {0, 1, -21}, {0, 2, -31}, {1, 2, -32}});
  CHECK(parse(banner + "array real skew-symmetric\n1 1\n").entries.empty());
  CHECK(parse(banner + "array real general\n0 9\n").entries.empty());
}

TEST_CASE("Matrix Market: numbers") {
  const auto value = [](const std::string& number) {
    return parse(general + "1 1 1\n1 1 " + number + "\n").entries.at(0).value;
  };
  CHECK(value("0.1") == 0.1);
  CHECK(value("0.30000000000000004") == 0.30000000000000004);
  CHECK(value("5e-324") == 5e-324);
  CHECK(value("1.7976931348623157e308") == 1.7976931348623157e308);
  CHECK(value("+0012.50E+01") == 125);
  CHECK(value("1.5D+02") == 150);
  CHECK(value("-2.5d-1") == -0.25);
  CHECK(value("1d-999") == 0);
  CHECK(std::signbit(value("-0.0")));
  CHECK(value("inf") == std::numeric_limits<double>::infinity());
  CHECK(value("-Infinity") == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(value("NaN")));
  for (const char* small : {"1e-999", "-1e-99999999999999999999", "0.00000001e-320"})
    CHECK(value(small) == 0);
  CHECK(std::signbit(value("-1e-999")));
  CHECK(value("0e99999") == 0);
  CHECK(parse<float>(general + "1 1 1\n1 1 1e-60\n").entries.at(0).value == 0);
  const auto bad = [](const std::string& number) { return refused(general + "1 1 1\n1 1 " + number + "\n"); };
  for (const char* large : {"1e999", "-1e309", "123e99999999999999999999"})
    CHECK(bad(large) == "m.mtx:3: a number is out of range: \"1 1 " + std::string(large) + "\"");
  CHECK(refused<float>(general + "1 1 1\n1 1 1e39\n") == "m.mtx:3: a number is out of range: \"1 1 1e39\"");
  for (const char* other :
       {"1,5", "1_0", "0x10", "1e", "+-1", "--1", "++1", "nan(1)", "one", ".", "1 %", "1\r2"})
    CHECK(bad(other) == "m.mtx:3: expected a row, a column and a value, found " +
                            io::detail::quoted("1 1 " + std::string(other)));
}

TEST_CASE("Matrix Market: what is refused in the header") {
  const std::string expected = "m.mtx:1: expected %%MatrixMarket matrix FORMAT FIELD SYMMETRY, found ";
  CHECK(refused("") == expected + "\"\"");
  CHECK(refused("3 3 1\n") == expected + "\"3 3 1\"");
  CHECK(refused(banner + "coordinate real\n1 1 0\n") ==
        expected + "\"%%MatrixMarket matrix coordinate real\"");
  CHECK(refused("%%MatrixMarket vector coordinate real general\n").starts_with(expected));
  CHECK(refused(banner + "coordinate real general 1\n").starts_with(expected));
  CHECK(refused(banner + "dense real general\n") ==
        "m.mtx:1: a matrix that is \"dense\" is not read, only coordinate, array");
  CHECK(refused(banner + "coordinate complex general\n") ==
        "m.mtx:1: a matrix that is \"complex\" is not read, only real, integer, pattern");
  CHECK(refused(banner + "coordinate real hermitian\n") ==
        "m.mtx:1: a matrix that is \"hermitian\" is not read, only general, symmetric, skew-symmetric");
  CHECK(refused(banner + "array pattern general\n1 1\n") == "m.mtx:1: an array cannot be a pattern");
  CHECK(refused<std::int64_t>(general + "1 1 0\n") ==
        "m.mtx:1: expected a matrix that is \"integer\" or \"pattern\", found \"real\"");
  CHECK(refused("\x1f\x8b\x08 packed") == "m.mtx: is gzip-compressed; decompress it first");

  const std::string sizes = "expected the rows, columns and entries of the matrix";
  CHECK(refused(general) == "m.mtx:2: " + sizes);
  CHECK(refused(general + "% only\n\n") == "m.mtx:4: " + sizes);
  for (const char* line : {"2 2", "2 2 1 1", "2 2 x", "-1 2 1", "2 2 -1", "2 2 1.0", "2,2,1"})
    CHECK(refused(general + "%\n" + line + "\n") ==
          "m.mtx:3: " + sizes + ", found " + io::detail::quoted(line));
  CHECK(refused(banner + "array real general\n2 2 4\n") ==
        "m.mtx:2: expected the rows and columns of the matrix, found \"2 2 4\"");
  CHECK(refused(general + "9223372036854775808 1 1\n") ==
        "m.mtx:2: 9223372036854775808 is larger than 9223372036854775807");
  CHECK(refused(banner + "coordinate real symmetric\n2 3 1\n") ==
        "m.mtx:2: a symmetric matrix cannot be 2 x 3");
  CHECK(refused(banner + "array real general\n4294967296 4294967296\n") ==
        "m.mtx:2: an array cannot be 4294967296 x 4294967296");
}

TEST_CASE("Matrix Market: what is refused in the entries") {
  const auto bad = [](const std::string& body) { return refused(general + body); };
  CHECK(bad("2 2 1\r\n1 2\r\n") == "m.mtx:3: expected a row, a column and a value, found \"1 2\"");
  CHECK(bad("2 2 1\n1 2 3 4\n") == "m.mtx:3: expected a row, a column and a value, found \"1 2 3 4\"");
  CHECK(bad("2 2 1\n1-2 3\n") == "m.mtx:3: expected a row, a column and a value, found \"1-2 3\"");
  CHECK(bad("2 2 1\n1.0 2 3\n") == "m.mtx:3: expected a row, a column and a value, found \"1.0 2 3\"");
  CHECK(bad("2 2 1\n99999999999999999999 2 3\n") ==
        "m.mtx:3: 99999999999999999999 is larger than 9223372036854775807");
  CHECK(bad("2 2 2\n1 2 1\n\n%\n3 1 1\n") == "m.mtx:6: entry (3, 1) is outside a matrix of 2 x 2");
  CHECK(bad("2 2 1\n0 1 1\n") == "m.mtx:3: entry (0, 1) is outside a matrix of 2 x 2");
  const std::string most = std::to_string(std::numeric_limits<global_index>::max());
  CHECK(bad(most + " " + most + " " + most + "\n1 0 1\n") ==
        "m.mtx:3: entry (1, 0) is outside a matrix of " + most + " x " + most);
  CHECK(bad("2 2 1\n2 -1 1\n") == "m.mtx:3: entry (2, -1) is outside a matrix of 2 x 2");
  CHECK(bad("2 2 3\n1 2 1\n1 1 1\n") == "m.mtx:5: expected 3 entries, found 2");
  CHECK(bad("2 2 4611686018427387904\n1 2 1\n") == "m.mtx:4: expected 4611686018427387904 entries, found 1");
  CHECK(bad("2 2 1\n\n1 2 1\n%\n2 1 1\n1 1 1\n") == "m.mtx:6: expected no more than 1 entries");
  CHECK(bad("2 2 1\n1 2 1\nrubbish\n") == "m.mtx:4: expected no more than 1 entries");
  CHECK(bad("2 2 2\n1 2 1\nrubbish\n1 2 1\n") ==
        "m.mtx:4: expected a row, a column and a value, found \"rubbish\"");
  CHECK(bad("2 2 0\n1 1 1\n") == "m.mtx:3: expected no more than 0 entries");
  CHECK(refused(banner + "coordinate pattern general\n2 2 1\n1 2 1\n") ==
        "m.mtx:3: expected a row and a column, found \"1 2 1\"");
  CHECK(refused(banner + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n") ==
        "m.mtx:3: a skew-symmetric matrix has no entries on its diagonal");
  const std::string whole = banner + "coordinate integer skew-symmetric\n2 2 1\n2 1 ";
  CHECK(refused(whole + "1.5\n") == "m.mtx:3: expected a row, a column and a value, found \"2 1 1.5\"");
  CHECK(refused<std::int32_t>(whole + "2147483648\n") ==
        "m.mtx:3: a number is out of range: \"2 1 2147483648\"");
  CHECK(refused<std::int32_t>(whole + "-2147483648\n") ==
        "m.mtx:3: a number is out of range: \"2 1 -2147483648\"");
  const std::string array = banner + "array real general\n2 2\n1\n2\n";
  CHECK(refused(array + "3\n") == "m.mtx:6: expected 4 entries, found 3");
  CHECK(refused(array + "3\n4\n5\n") == "m.mtx:7: expected no more than 4 entries");
  CHECK(refused(array + "3 4\n") == "m.mtx:5: expected a value, found \"3 4\"");
}

/// A file of `count` entries whose lines differ in length, with comments and blank lines among them.
std::string long_text(const std::string& symmetry, int count) {
  std::string text = banner + "coordinate real " + symmetry + "\n1000 1000 " + std::to_string(count) + '\n';
  for (int e = 0; e < count; ++e) {
    const auto random = [&](int k) { return base::random_bits(7, e, k); };
    text += std::to_string(501 + random(0) % 500) + ' ' + std::to_string(1 + random(1) % (e % 2 ? 10 : 500)) +
            ' ' + std::to_string(static_cast<double>(random(2) % 1000) / 7) + (e % 5 == 0 ? "\r\n" : "\n");
    if (e % 7 == 0) text += e % 2 ? "\n" : "% a comment of some length\n";
  }
  return text;
}

TEST_CASE("Matrix Market: the same entries with any number of threads, from a file and from memory") {
  const scratch folder;
  for (const char* symmetry : {"general", "symmetric", "skew-symmetric"}) {
    const std::string text = long_text(symmetry, 300);
    write_text(folder / "m.mtx", text);
    const auto expected = parse(text);
    CHECK(expected.entries.size() == (expected.symmetry == io::market_symmetry::general ? 300 : 600));
    for (int threads = 2; threads <= 7; ++threads) {
      CHECK(parse(text, threads).entries == expected.entries);
      CHECK(io::read_matrix_market(folder / "m.mtx", threads).entries == expected.entries);
    }
  }
  CHECK(complaint(folder.dir, [&] { io::read_matrix_market(folder / "none.mtx"); }) ==
        "none.mtx: no such file");
  write_text(folder / "m.mtx", general + "1 1 1\n2 1 1\n");
  CHECK(complaint(folder.dir, [&] { io::read_matrix_market(folder / "m.mtx", 3); }) ==
        "m.mtx:3: entry (2, 1) is outside a matrix of 1 x 1");
}

TEST_CASE("Matrix Market: every truncation and every changed byte is read or refused") {
  const std::string array = banner + "array integer symmetric\n2 2\n1\n-2\n3\n";
  for (const std::string& text : {long_text("symmetric", 6), array}) {
    int read = 0, damaged = 0;
    const auto attempt = [&](const std::string& changed) {
      for (const int threads : {1, 3}) try {
          parse(changed, threads);
          ++read;
        } catch (const error& e) {
          CHECK(std::string(e.what()).starts_with("m.mtx"));
          ++damaged;
        }
    };
    for (std::size_t size = 0; size <= text.size(); ++size) attempt(text.substr(0, size));
    for (std::size_t at = 0; at < text.size(); ++at)
      for (const char byte : {'\0', '\n', ' ', '9', '-', '\r', '%', '\xff'}) {
        std::string changed = text;
        changed[at] = byte;
        attempt(changed);
      }
    CHECK(read > 0);
    CHECK(damaged > 0);
  }
}

TEST_CASE("Matrix Market: what is written is read again, bit for bit") {
  const scratch folder;
  const fs::path path = folder / "w.mtx";
  const entries general_entries{{0, 2, 0.1},
                                {1, 0, -0.0},
                                {1, 1, 5e-324},
                                {0, 0, 1e22},
                                {0, 0, 1e-7},
                                {1, 2, 1.0 / 3},
                                {0, 1, std::numeric_limits<double>::infinity()}};
  io::write_matrix_market(path, {2, 3}, general_entries);
  const auto again = io::read_matrix_market(path);
  CHECK(again.shape == matrix_shape{2, 3});
  CHECK(same_bits(again.entries, general_entries));
  CHECK(read_text(path).starts_with(general + "2 3 7\n1 3 0.1\n2 1 -0\n2 2 5e-324\n1 1 1e+22\n"));

  io::write_matrix_market(path, {2, 2}, entries{{1, 0, 2.5}, {1, 1, 1}}, io::market_symmetry::symmetric);
  CHECK(read_text(path) == banner + "coordinate real symmetric\n2 2 2\n2 1 2.5\n2 2 1\n");
  CHECK(io::read_matrix_market(path).entries == entries{{1, 0, 2.5}, {0, 1, 2.5}, {1, 1, 1}});
  io::write_matrix_market(path, {2, 2}, std::vector<triplet<std::int32_t>>{{1, 0, -7}},
                          io::market_symmetry::skew_symmetric);
  CHECK(read_text(path) == banner + "coordinate integer skew-symmetric\n2 2 1\n2 1 -7\n");

  const auto refuses = [&](matrix_shape shape, const entries& list, io::market_symmetry symmetry) {
    return complaint(folder.dir, [&] { io::write_matrix_market(path, shape, list, symmetry); });
  };
  using enum io::market_symmetry;
  CHECK(refuses({2, 3}, {}, symmetric) == "w.mtx: a symmetric matrix cannot be 2 x 3");
  CHECK(refuses({2, 2}, {{2, 0, 1}}, io::market_symmetry::general) ==
        "w.mtx: entry (3, 1) is not in what is written of a general matrix of 2 x 2");
  CHECK(refuses({2, 2}, {{0, 1, 1}}, symmetric) ==
        "w.mtx: entry (1, 2) is not in what is written of a symmetric matrix of 2 x 2");
  CHECK(refuses({2, 2}, {{1, 1, 1}}, skew_symmetric) ==
        "w.mtx: entry (2, 2) is not in what is written of a skew-symmetric matrix of 2 x 2");
  CHECK(complaint(folder.dir, [&] {
          io::write_matrix_market(folder / "no/w.mtx", {1, 1}, entries{});
        }) == "no/w.mtx: cannot be written (No such file or directory)");
}

}  // namespace test_matrix_market
