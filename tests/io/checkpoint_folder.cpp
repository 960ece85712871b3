// SPDX-License-Identifier: Apache-2.0
// The newest whole checkpoint is taken, whatever became of the others.
#include "partita/io/checkpoint_folder.hpp"

#include "support/scratch.hpp"

namespace test_io_checkpoint_folder {

using namespace partita;
using namespace test_support;

/// A checkpoint with 4 values that say of which epoch it is.
void write(const io::checkpoint_folder& folder, int epoch) {
  const std::vector<double> weights(3, epoch);
  const std::array<std::int64_t, 1> number{epoch};
  folder.write(
      epoch,
      std::vector{io::tensor_of("w", {3, 1}, std::span(weights)), io::tensor_of("n", {1}, std::span(number))},
      {{"of", std::to_string(epoch)}});
}

struct found {
  int epoch = 0;
  std::vector<std::string> passed_over;
};

found newest(const io::checkpoint_folder& folder) {
  found f;
  const auto file = folder.newest([&](const std::string& what) { f.passed_over.push_back(what); });
  if (!file) return f;
  f.epoch = static_cast<int>(file->values<std::int64_t>("n")[0]);
  CHECK(file->values<double>("w") == std::vector<double>(3, f.epoch));
  CHECK(file->metadata().at("of") == std::to_string(f.epoch));
  return f;
}

TEST_CASE("the newest checkpoints are kept, and what is no checkpoint is left alone") {
  const scratch to;
  std::optional<io::checkpoint_folder> first(std::in_place, to.dir / "a" / "b", 2);
  const io::checkpoint_folder& folder = *first;
  CHECK(folder.epochs().empty());
  CHECK(newest(folder).epoch == 0);
  for (const char* other : {"checkpoint-7.txt", "checkpoint-.safetensors", "checkpoint-07.safetensors",
                            "checkpoint-x.safetensors", "checkpoint-99999999999.safetensors", "notes",
                            "checkpoint-3.safetensors.old"})
    write_text(to.dir / "a" / "b" / other, "x");
  write_text(to.dir / "a" / "b" / ".partita-unfinished-1-0", "x");
  for (const int epoch : {5, 10, 15, 20}) write(folder, epoch);
  CHECK(folder.epochs() == std::vector{20, 15});
  CHECK(newest(folder).epoch == 20);
  write(folder, 12);  // after going on from an earlier one
  CHECK(folder.epochs() == std::vector{20, 15, 12});
  CHECK(complaint(to.dir, [&] { io::checkpoint_folder(to.dir / "a" / "b", 1); }) ==
        "a/b: another run is writing its checkpoints there");
  CHECK(fs::exists(to.dir / "a" / "b" / ".partita-unfinished-1-0"));
  first.reset();
  const io::checkpoint_folder again(to.dir / "a" / "b", 1);
  CHECK_FALSE(fs::exists(to.dir / "a" / "b" / ".partita-unfinished-1-0"));
  write(again, 25);
  CHECK(again.epochs() == std::vector{25});
  CHECK(fs::exists(to.dir / "a" / "b" / "checkpoint-07.safetensors"));
}

TEST_CASE("a checkpoint with any bit flipped, cut anywhere or empty is named and passed over") {
  const scratch to;
  const io::checkpoint_folder folder(to.dir, 2);
  write(folder, 1);
  write(folder, 2);
  const std::string whole = read_text(folder.path_of(2));
  const auto is_passed_over = [&](const std::string& damaged, std::size_t at) {
    write_text(folder.path_of(2), damaged);
    const found f = newest(folder);
    CHECK_MESSAGE(f.epoch == 1, "byte ", at);
    REQUIRE(f.passed_over.size() == 1);
    CHECK(f.passed_over[0].starts_with(folder.path_of(2).string() + ": "));
  };
  const std::size_t header = 8 + static_cast<unsigned char>(whole[0]) +
                             256 * static_cast<std::size_t>(static_cast<unsigned char>(whole[1]));
  std::size_t blanks = header;  // between the header and the values, without a meaning
  while (whole[blanks - 1] == ' ') --blanks;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      if (at >= blanks && at < header) continue;
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      is_passed_over(damaged, at);
    }
  for (std::size_t length = 0; length < whole.size(); ++length)
    is_passed_over(whole.substr(0, length), length);
  is_passed_over(whole + '\0', whole.size());

  write_text(folder.path_of(1), "");
  write_text(folder.path_of(2), "");
  CHECK(newest(folder).epoch == 0);
  CHECK(newest(folder).passed_over.size() == 2);
  io::save_safetensors(folder.path_of(3), {});
  CHECK(newest(folder).passed_over[0] == folder.path_of(3).string() + ": has no checksum");
}

TEST_CASE("what cannot be made or written says so in one sentence, and leaves the last checkpoint") {
  const scratch to;
  write_text(to / "file", "x");
  CHECK(complaint(to.dir, [&] { io::checkpoint_folder(to.dir / "file" / "here", 1); }) ==
        "file/here: cannot be made (Not a directory)");
  CHECK(complaint(to.dir, [&] { io::checkpoint_folder(to / "file", 1); }).starts_with("file: cannot be"));
  CHECK_THROWS_WITH_AS(io::checkpoint_folder(to / "folder", 0), "at least one checkpoint is kept, not 0",
                       error);
  const io::checkpoint_folder folder(to / "folder", 1);
  write(folder, 1);
  fs::create_directories(folder.path_of(2));
  CHECK(complaint(to.dir, [&] { write(folder, 2); }) ==
        "folder/checkpoint-2.safetensors: is not a regular file");
  const found f = newest(folder);
  CHECK(f.epoch == 1);
  CHECK(f.passed_over.size() == 1);
}

TEST_CASE("FNV-1a of 64 bits has the values of its authors") {
  const auto sum_of = [](const std::string& text) {
    io::fnv1a_64 sum;
    sum.add(std::as_bytes(std::span(text)));
    return sum.text();
  };
  CHECK(sum_of("") == "cbf29ce484222325");
  CHECK(sum_of("a") == "af63dc4c8601ec8c");
  CHECK(sum_of("foobar") == "85944171f73967e8");
}

}  // namespace test_io_checkpoint_folder
