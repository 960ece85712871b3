// SPDX-License-Identifier: Apache-2.0
// What gzip has packed, whole, in several members and damaged.
#include "partita/io/gzip.hpp"

#include "partita/base/random.hpp"
#include "support/gzip_files.hpp"
#include "support/scratch.hpp"

namespace test_gzip {

using namespace test_support;

std::string numbers(int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += std::to_string(7919 * k) + '\n';
  return text;
}

TEST_CASE("gzip: text of any length, from a file and from memory") {
  const scratch folder;
  for (const int count : {0, 1, 100, 200000}) {
    const std::string text = numbers(count), packed = gzip(text);
    write_text(folder / "t.gz", packed);
    CHECK(io::read_gzip(folder / "t.gz") == text);
    CHECK(io::unpack_gzip(packed, "m") == text);
    CHECK(io::unpack_gzip(packed + packed + std::string(70000, '\0'), "m") == text + text);
  }
}

TEST_CASE("gzip: what is packed in pieces is unpacked again") {
  for (const int count : {0, 1, 100000}) {
    io::gzip_packer packer;
    std::string packed, text;
    const auto take = [&](std::span<const std::byte> bytes) {
      packed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    for (int piece = 0; piece < 3; ++piece) {
      packer.pack(numbers(count + piece), take);
      text += numbers(count + piece);
    }
    packer.finish(take);
    CHECK(io::unpack_gzip(packed, "m") == text);
  }
}

TEST_CASE("gzip: pieces of a file are its text, and none is large") {
  const scratch folder;
  for (const int count : {0, 1, 100000}) {
    const std::string text = numbers(count) + std::string(500000, 'x');
    write_text(folder / "t.gz", gzip(text) + gzip("") + gzip("end"));
    std::string joined;
    io::for_gzip_pieces(folder / "t.gz", [&](std::string_view piece) {
      CHECK(piece.size() <= 65536);
      joined += piece;
    });
    CHECK(joined == text + "end");
  }
  write_text(folder / "t.gz", gzip(numbers(1000)).substr(0, 900));
  const auto pieces = [&] { io::for_gzip_pieces(folder / "t.gz", [](std::string_view) {}); };
  CHECK(complaint(folder.dir, pieces) == complaint(folder.dir, [&] { io::read_gzip(folder / "t.gz"); }));
  CHECK(complaint(folder.dir, pieces).find("it ends too early") != std::string::npos);
}

TEST_CASE("gzip: damaged files are refused by name") {
  const scratch folder;
  const auto refused = [&](const std::string& packed) {
    write_text(folder / "t.gz", packed);
    const std::string said = complaint(folder.dir, [&] { io::read_gzip(folder / "t.gz"); });
    CHECK(complaint(folder.dir, [&] { io::unpack_gzip(packed, folder / "t.gz"); }) == said);
    return said;
  };
  const std::string packed = gzip(numbers(1000));
  CHECK(refused("") == "t.gz: cannot be unpacked: it ends too early");
  CHECK(refused("1 2\n") == "t.gz: cannot be unpacked: incorrect header check");
  CHECK(refused(packed.substr(0, packed.size() - 9)) == "t.gz: cannot be unpacked: it ends too early");
  CHECK(refused(packed + "more") == "t.gz: cannot be unpacked: incorrect header check");
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;
  CHECK(refused(flipped) == "t.gz: cannot be unpacked: incorrect data check");
  for (std::size_t at = 10; at < packed.size(); at += 37) {
    flipped = packed;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    CHECK(refused(flipped).starts_with("t.gz: cannot be unpacked: "));
  }
  CHECK(complaint(folder.dir, [&] { io::read_gzip(folder / "none.gz"); }) == "none.gz: no such file");
}

TEST_CASE("gzip: no more is unpacked than the file's size calls for") {
  const scratch folder;
  const std::string zeros(1 << 20, '0'), packed = gzip(zeros);
  CHECK(io::unpack_gzip(packed, "m", zeros.size()) == zeros);
  CHECK(complaint(folder.dir, [&] { io::unpack_gzip(packed, folder / "m", zeros.size() - 1); }) ==
        "m: has more than 1048575 bytes, the limit of what is unpacked, which unpack_limit or --unpack-limit "
        "SIZE sets; by default it is a quarter of the free memory");
  write_text(folder / "m", packed);
  CHECK(io::read_gzip(folder / "m", zeros.size()) == zeros);
  CHECK(complaint(folder.dir, [&] { io::read_gzip(folder / "m", 10); }).starts_with("m: has more than 10 "));
  CHECK(io::unpack_gzip(packed, "m") == zeros);  // packs 1000 times
  const std::size_t gibibyte = std::size_t{1} << 30;
  CHECK(io::most_unpacked(gibibyte) <= io::available_memory() / 3);
  CHECK(io::most_unpacked(1 << 10) < std::size_t{2} << 20);
}

}  // namespace test_gzip
