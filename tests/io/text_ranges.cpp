// SPDX-License-Identifier: Apache-2.0
// Ranges of lines, read in blocks and parsed by several threads.
#include "partita/io/text_ranges.hpp"

#include "support/scratch.hpp"

namespace test_text_ranges {

using namespace test_support;

const std::vector<std::string> texts{
    "",
    "\n",
    "a",
    "a\n",
    "a\nbb",
    "a\r\n",
    "\n\n\nx\n\n",
    "one\nand a line that is much longer than the others\ntwo\n\nthree\r\nfour",
};

/// What for_blocks gives of all ranges, and where blocks begin.
std::string joined(const io::text_source& text, std::size_t begin, int parts, std::size_t block_bytes) {
  std::string all;
  const std::vector<interval> ranges = io::line_ranges(text, begin, parts);
  CHECK(ranges.size() == static_cast<std::size_t>(parts));
  global_index end = static_cast<global_index>(begin);
  for (const interval range : ranges) {
    CHECK(range.begin == end);
    end = range.end;
    io::for_blocks(
        text, range,
        [&](const io::text_block& block) {
          CHECK(block.position == begin + all.size());
          CHECK(block.range == range);
          CHECK(block.lines.ends_with('\n'));
          all += block.lines;
          return true;
        },
        block_bytes);
  }
  CHECK(end == static_cast<global_index>(text.size()));
  return all;
}

TEST_CASE("ranges and blocks are whole lines, and together the text") {
  const scratch folder;
  for (const std::string& expected : texts) {
    write_text(folder / "t", expected);
    const io::text_source in_file(folder / "t"), in_memory(expected, "m");
    const std::string ended = expected.empty() || expected.ends_with('\n') ? expected : expected + '\n';
    for (const std::size_t block_bytes : {1, 2, 5, 64})
      for (int parts = 1; parts <= 7; ++parts) {
        CHECK(joined(in_memory, 0, parts, block_bytes) == ended);
        CHECK(joined(in_file, 0, parts, block_bytes) == ended);
      }
  }
  const std::string text = "skipped\n1\n2\n3";
  CHECK(joined(io::text_source(text, "m"), 8, 3, 1) == "1\n2\n3\n");
}

TEST_CASE("blocks: the last one that is asked for is the last one read") {
  const io::text_source text("1\n2\n3\n4\n", "m");
  int blocks = 0;
  io::for_blocks(
      text, {0, 8}, [&](const io::text_block&) { return ++blocks < 3; }, 2);
  CHECK(blocks == 3);
}

TEST_CASE("ranges: the first malformed line is named, whatever the number of threads") {
  const scratch folder;
  write_text(folder / "t", "good\r\ngood\n\nbad 4\ngood\nbad 6");
  const io::text_source text(folder / "t");
  for (int threads = 1; threads <= 7; ++threads) {
    const auto parsed = io::parse_ranges<int>(
        text, 0, threads,
        [](int& good, const io::text_block& block) {
          for (std::size_t begin = 0, next; begin < block.lines.size(); begin = next) {
            next = block.lines.find('\n', begin) + 1;
            const std::string line(block.lines.substr(begin, next - begin - 1));
            if (line.starts_with("bad")) throw io::malformed_line(block.position + begin, line);
            if (line.starts_with("good")) ++good;
          }
          return true;
        },
        3);
    int good = 0;
    for (const auto& [range, part, stopped] : parsed) {
      good += part;
      if (!stopped) continue;
      CHECK(good == 2);
      CHECK(complaint(folder.dir, [&] { io::fail_at(text, *stopped); }) == "t:4: bad 4");
      break;
    }
    CHECK(good == 2);
  }
  CHECK(complaint(folder.dir, [&] { io::fail_at(text, {0, "first"}); }) == "t:1: first");
  CHECK(complaint(folder.dir, [&] { io::fail_at(text, {text.size(), "the end"}); }) == "t:6: the end");
}

TEST_CASE("ranges: files that cannot be read, or change") {
  const scratch folder;
  CHECK(complaint(folder.dir, [&] { io::text_source(folder / "none"); }) == "none: no such file");
  fs::create_directory(folder / "d");
  CHECK(complaint(folder.dir, [&] { io::text_source(folder / "d"); }) == "d: is not a regular file");
  write_text(folder / "t", "1\n2\n");
  const io::text_source text(folder / "t");
  fs::resize_file(folder / "t", 2);
  CHECK(complaint(folder.dir, [&] {
          io::for_blocks(text, {0, 4}, [](const io::text_block&) { return true; });
        }) == "t: has become shorter while it was read");
}

}  // namespace test_text_ranges
