// SPDX-License-Identifier: Apache-2.0
// A mapped file that changes is named, also by a process that would end by a signal.
#include "partita/io/changed_files.hpp"

#include <chrono>
#include <sys/wait.h>

#include "partita/io/mapped_npy.hpp"
#include "support/scratch.hpp"

namespace test_io_changed_files {

using namespace partita;
using namespace test_support;

TEST_CASE("a file that is written to while it is mapped is named") {
  const scratch folder;
  const fs::path path = folder / "x.npy";
  io::write_npy(path, {5000}, std::vector<std::int64_t>(5000, 7));
  const std::string whole = read_text(path);
  const auto changed = [&] { return complaint(folder.dir, [] { io::require_unchanged_files(); }); };
  {
    const auto mapped = io::map_npy<std::int64_t>(path).values;
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
    CHECK(changed() == "x.npy: has changed while it was in use");
  }
  CHECK(changed() == "");
  const auto again = io::map_npy<std::int64_t>(path).values;
  CHECK(changed() == "");
  fs::resize_file(path, 4096);
  CHECK(changed() == "x.npy: has changed while it was in use");
  const int ended = [&] {  // reading a page that is gone
    const pid_t child = ::fork();
    if (child == 0) {
      io::end_when_files_change("reader");
      ::_exit(again[4999] == 0 ? 2 : 3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }();
  CHECK(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == 1);
}

}  // namespace test_io_changed_files
