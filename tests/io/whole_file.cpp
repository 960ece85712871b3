// SPDX-License-Identifier: Apache-2.0
// A reader sees the old file or the new one, whatever happens to the writer.
#include "partita/io/whole_file.hpp"

#include <csignal>
#include <iterator>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <vector>

#include "support/scratch.hpp"

namespace test_io_whole_file {

using namespace test_support;

void write(const fs::path& path, const std::vector<std::string>& texts) {
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) parts.push_back(std::as_bytes(std::span(text)));
  io::write_whole_file(path, parts);
}

auto files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

/// While it lives, no file can grow beyond `bytes`: the last write that fits is short, and the next one
/// fails.
struct size_limit {
  rlimit before{};
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  explicit size_limit(rlim_t bytes) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit limit{bytes, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  size_limit(const size_limit&) = delete;
  ~size_limit() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
};

TEST_CASE("whole_file: what is written is there, and nothing else") {
  const scratch folder;
  const fs::path path = folder / "x";
  write(path, {"one, ", "", "two"});
  CHECK(read_text(path) == "one, two");
  write(path, {std::string(3 << 20, 'a'), "b"});
  CHECK(read_text(path) == std::string(3 << 20, 'a') + "b");
  write(path, {});
  CHECK(read_text(path) == "");
  CHECK(files_in(folder.dir) == 1);

  const fs::path before = fs::current_path();
  fs::current_path(folder.dir);
  write("x", {"without a folder"});
  fs::current_path(before);
  CHECK(read_text(path) == "without a folder");
  write(folder / std::string(255, 'n').c_str(), {"a name as long as any"});
  CHECK(files_in(folder.dir) == 2);
}

TEST_CASE("whole_file: who has the old file open keeps it") {
  const scratch folder;
  write(folder / "x", {"the old one"});
  std::ifstream reader(folder / "x");
  std::string word;
  reader >> word;
  write(folder / "x", {"something new, which is longer"});
  CHECK(std::string(std::istreambuf_iterator<char>(reader), {}) == " old one");
  CHECK(read_text(folder / "x") == "something new, which is longer");
}

TEST_CASE("whole_file: permissions and links stay as they are") {
  const scratch folder;
  write(folder / "x", {"1"});
  fs::permissions(folder / "x", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("x", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  write(folder / "link", {"2"});
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_text(folder / "x") == "2");
  CHECK(fs::status(folder / "x").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  write(folder / "dangling", {"3"});
  CHECK(fs::is_symlink(folder / "dangling"));
  CHECK(read_text(folder / "nowhere") == "3");
  CHECK(files_in(folder.dir) == 4);
}

TEST_CASE("whole_file: a disk that takes no more leaves the old file") {
  const scratch folder;
  write(folder / "x", {"old"});
  const std::string refused = [&] {
    const size_limit limit(10000);
    return complaint(folder.dir, [&] {
      write(folder / "x", {std::string(9000, 'a'), std::string(9000, 'b')});
    });
  }();
  CHECK(refused == "x: cannot be written (File too large)");
  CHECK(read_text(folder / "x") == "old");
  CHECK(files_in(folder.dir) == 1);

  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) return;
  CHECK(complaint("x", [&] { io::detail::write_all(full, std::as_bytes(std::span("abc")), "x/y"); }) ==
        "y: cannot be written (No space left on device)");
  ::close(full);
}

TEST_CASE("whole_file: places where no file can be") {
  const scratch folder;
  write(folder / "file", {"old"});
  fs::create_directory(folder / "d");
  fs::create_symlink("loop", folder / "loop");
  const auto writing = [&](const char* name) {
    return complaint(folder.dir, [&] { write(folder / name, {"new"}); });
  };
  CHECK(writing("none/x") == "none/x: cannot be written (No such file or directory)");
  CHECK(writing("file/x") == "file/x: cannot be written (Not a directory)");
  CHECK(writing("d") == "d: is not a regular file");
  CHECK(writing("d/") == "d/: is not a regular file");
  CHECK(writing("loop") == "loop: cannot be written (Too many levels of symbolic links)");
  CHECK(writing("none/") == "none/: cannot be written (No such file or directory)");
  CHECK(writing(std::string(256, 'n').c_str()) ==
        std::string(256, 'n') + ": cannot be written (File name too long)");
  CHECK_THROWS_AS(write("", {"new"}), input_error);
  CHECK_THROWS_WITH_AS(write("/dev/null", {"new"}), "/dev/null: is not a regular file", input_error);
  REQUIRE(fs::is_character_file("/dev/null"));
  CHECK(read_text(folder / "file") == "old");
  CHECK(files_in(folder.dir) == 3);
  CHECK(files_in(folder / "d") == 0);
}

TEST_CASE("whole_file: a folder that may not be written to") {
  const scratch folder;
  fs::create_directory(folder / "d");
  write(folder / "d/x", {"old"});
  fs::permissions(folder / "d", fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                    fs::perms::others_exec);
  // Nothing is refused to root, so a process of somebody else tries; it is not sure to be allowed.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    try {
      write(folder / "d/x", {"new"});
    } catch (const input_error& e) {
      _exit(e.what() == (folder / "d/x").string() + ": cannot be written (Permission denied)" ? 0 : 1);
    }
    _exit(1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
  fs::permissions(folder / "d", fs::perms::owner_all);
  CHECK(read_text(folder / "d/x") == "old");
  CHECK(files_in(folder / "d") == 1);
}

TEST_CASE("whole_file: a killed writer leaves the old file, and what can be removed") {
  const scratch folder;
  write(folder / "x", {"old"});
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    io::detail::unfinished_file file(folder.dir, 0666, "x");
    file.write(std::as_bytes(std::span("new")));
    raise(SIGKILL);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(read_text(folder / "x") == "old");
  CHECK(files_in(folder.dir) == 2);
  CHECK(io::remove_unfinished_files(folder.dir) == 1);
  CHECK(io::remove_unfinished_files(folder.dir) == 0);
  CHECK(files_in(folder.dir) == 1);
  CHECK(complaint(folder.dir, [&] { io::remove_unfinished_files(folder / "none"); }) ==
        "none: cannot be read (No such file or directory)");
}

TEST_CASE("whole_file: names that a killed writer has taken are passed over") {
  const scratch folder;
  const std::string taken = ".partita-unfinished-" + std::to_string(getpid()) + "-0";
  write_text(folder / taken.c_str(), "left");
  write(folder / "x", {"new"});
  CHECK(read_text(folder / "x") == "new");
  CHECK(read_text(folder / taken.c_str()) == "left");
}

}  // namespace test_io_whole_file
