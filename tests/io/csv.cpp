// SPDX-License-Identifier: Apache-2.0
// Tables of numbers with commas between them.
#include "partita/io/csv.hpp"

#include <cmath>

#include "support/scratch.hpp"

namespace test_csv {

using namespace test_support;

TEST_CASE("csv: whole and real numbers, by any number of threads") {
  for (int threads = 1; threads <= 5; ++threads) {
    const auto a = io::parse_csv<std::int64_t>("1,-2\r\n\r\n 3 , 4\n5,6", "m", threads);
    CHECK(a.rows == 3);
    CHECK(a.cols == 2);
    CHECK(a.values == std::vector<std::int64_t>{1, -2, 3, 4, 5, 6});
    const auto b = io::parse_csv<double>("0.5,,nan\n1e-3,-inf,7\n", "m", threads);
    CHECK(b.rows == 2);
    CHECK(b.values[0] == 0.5);
    CHECK(std::isnan(b.values[1]));
    CHECK(std::isnan(b.values[2]));
    CHECK(b.values[4] < 0);
    CHECK(b.values[5] == 7);
  }
  const auto named =
      io::parse_csv<double>("\xef\xbb\xbf\n,\"x\",label\n0,nan,2\n1,3,4\n", "m", 2);  // names are skipped
  CHECK(named.rows == 2);
  CHECK(named.cols == 3);
  CHECK(named.values[5] == 4);
  CHECK(io::parse_csv<double>("nan,inf\n,\n", "m").rows == 2);  // these are numbers, or none
  CHECK(io::parse_csv<float>("", "m").rows == 0);
  CHECK(io::parse_csv<float>("\n\n", "m").rows == 0);
}

TEST_CASE("csv: in the form of an edge list, also between blanks, and with comments") {
  for (const std::string text :
       {"# of\n\nsource\ttarget\ttype\n0 1\t2 \n% no\n 3, 4 ;5\r\n// end", "0,1,2\n3,4,5\n"})
    for (int threads = 1; threads <= 3; ++threads) {
      const auto a = io::parse_csv<double>(io::text_source(text, "m"), threads, io::table_form::edge_list);
      CHECK(a.cols == 3);
      CHECK(a.values == std::vector<double>{0, 1, 2, 3, 4, 5});
    }
  const scratch folder;
  const auto refused = [&](const std::string& text) {
    return complaint(folder.dir, [&] {
      io::parse_csv<double>(io::text_source(text, folder / "m"), 2, io::table_form::edge_list);
    });
  };
  CHECK(refused("0 1 2\n3 4\n") == "m:2: expected 3 numbers, found \"3 4\"");
  CHECK(refused("0 1 2\n3 4 5 6\n") == "m:2: expected 3 numbers, found \"3 4 5 6\"");
  CHECK(refused("# no\n0 1 2\n3,4,,5\n") == "m:3: expected 3 numbers, found \"3,4,,5\"");
  const io::text_source text("# no\n0 1\n\n2 3\n", folder / "m");
  CHECK(complaint(folder.dir, [&] { io::fail_at_row(text, 1, "no", io::table_form::edge_list); }) ==
        "m:4: no");
}

TEST_CASE("csv: malformed lines are named") {
  const scratch folder;
  const auto refused = [&]<class T>(T, const std::string& text) {
    return complaint(folder.dir, [&] { io::parse_csv<T>(text, folder / "m", 3); });
  };
  CHECK(refused(std::int64_t{}, "1,2\n3\n") ==
        "m:2: expected 2 whole numbers and commas between, found \"3\"");
  CHECK(refused(std::int64_t{}, "1,2\n3,4,5\n") ==
        "m:2: expected 2 whole numbers and commas between, found \"3,4,5\"");
  CHECK(refused(std::int64_t{}, "1\n2.5\n") == "m:2: expected 1 whole number, found \"2.5\"");
  CHECK(refused(std::int64_t{}, "1,2\n3,\n") ==
        "m:2: expected 2 whole numbers and commas between, found \"3,\"");
  CHECK(refused(1.0, "source\ntarget\n") == "m:2: expected 1 number, found \"target\"");
  CHECK(refused(1.0, "source,1\n") == "m:1: expected 2 numbers and commas between, found \"source,1\"");
  CHECK(refused(1.0f, "1\n1e99\n") == "m:2: 1e99 is beyond the numbers of 32 bits");
  CHECK(refused(std::int64_t{}, "9223372036854775808\n") ==
        "m:1: 9223372036854775808 is larger than 9223372036854775807");
  const std::string text = "a,b\n\n1,2\n\n3,4\n";
  CHECK(complaint(folder.dir, [&] { io::fail_at_row({text, folder / "m"}, 1, "no"); }) == "m:5: no");
}

}  // namespace test_csv
