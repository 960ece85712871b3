// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Text that several threads parse at once: byte ranges of whole lines, read in blocks.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/descriptor.hpp"
#include "partita/io/quote.hpp"
#include "partita/local/parallel.hpp"

namespace partita::io {

/// The bytes of a file, or of memory, which any number of threads may read at any position.
class text_source {
 public:
  /// The file `path`, open while this object lives. Throws input_error, with the reason, if it cannot be
  /// opened or is not a regular file.
  explicit text_source(const std::filesystem::path& path)
      : name_(detail::name_of_file(path)),
        file_(detail::uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); })) {
    struct stat status {};
    if (file_.number() < 0 || ::fstat(file_.number(), &status) != 0)
      detail::fail(name_, "cannot be opened: " + std::generic_category().message(errno));
    size_ = static_cast<std::size_t>(status.st_size);
  }
  /// Text in memory, which must outlive this object. `name` denotes it in messages.
  text_source(std::string_view text, std::string name)
      : name_(std::move(name)), memory_(text), size_(text.size()) {}

  const std::string& name() const { return name_; }
  /// In bytes.
  std::size_t size() const { return size_; }

  /// Copies `count` bytes, beginning at `position`, to `to`. Throws input_error if the file cannot be read
  /// or has become shorter.
  void read(std::size_t position, char* to, std::size_t count) const {
    if (file_.number() < 0) {
      std::copy_n(memory_.data() + position, count, to);
      return;
    }
    while (count > 0) {
      const ssize_t got = detail::uninterrupted(
          [&] { return ::pread(file_.number(), to, count, static_cast<off_t>(position)); });
      if (got < 0) detail::fail(name_, "cannot be read: " + std::generic_category().message(errno));
      if (got == 0) detail::fail(name_, "has become shorter while it was read");
      const auto bytes = static_cast<std::size_t>(got);
      position += bytes, to += bytes, count -= bytes;
    }
  }

 private:
  std::string name_;
  std::string_view memory_;
  detail::descriptor file_{-1};  ///< none for text in memory
  std::size_t size_ = 0;
};

/// Thrown by a parser: what is wrong in the line that contains the byte `position`.
struct malformed_line : std::exception {
  std::size_t position;
  std::string reason;

  malformed_line(std::size_t byte, std::string text) : position(byte), reason(std::move(text)) {}
  const char* what() const noexcept override { return reason.c_str(); }
};

/// Consecutive whole lines of a text.
struct text_block {
  std::string_view lines;  ///< each ends with '\n', which is added if the text ends without it
  std::size_t position;    ///< of the first byte in the text
  interval range;          ///< of the bytes to which the block belongs
};

/// The number of lines in the block's range if the others are like those of the block.
inline std::size_t expected_lines(const text_block& block) {
  const auto lines = std::count(block.lines.begin(), block.lines.end(), '\n');
  return 1 + static_cast<std::size_t>(1.02 * static_cast<double>(lines) *
                                      static_cast<double>(block.range.size()) /
                                      static_cast<double>(block.lines.size()));
}

/// How much is read at once; a longer line is still read whole.
inline constexpr std::size_t text_block_bytes = std::size_t{1} << 18;

/// Reads the bytes `range`, which begin and end with lines, and calls f(text_block) for one block after the
/// other until it returns false. Throws input_error as text_source::read does, and what f throws.
template <class F>
void for_blocks(const text_source& text, interval range, const F& f,
                std::size_t block_bytes = text_block_bytes) {
  const auto end = static_cast<std::size_t>(range.end);
  auto position = static_cast<std::size_t>(range.begin);
  std::size_t room = std::min(block_bytes, end - position);
  std::vector<char> buffer(room + 1);  // and for the '\n' that is added
  for (std::size_t kept = 0; position < end;) {
    const std::size_t more = std::min(room - kept, end - position - kept);
    text.read(position + kept, buffer.data() + kept, more);
    std::size_t have = kept + more;
    if (position + have == end && buffer[have - 1] != '\n') buffer[have++] = '\n';
    const std::size_t last = std::string_view(buffer.data(), have).substr(kept).rfind('\n');
    if (last == std::string_view::npos) {
      kept = have;
      room *= 2;
      buffer.resize(room + 1);
      continue;
    }
    const std::size_t whole = kept + last + 1;
    if (!f(text_block{{buffer.data(), whole}, position, range})) return;
    kept = have - whole;
    std::memmove(buffer.data(), buffer.data() + whole, kept);
    position += whole;
  }
}

namespace detail {

/// Where a text begins: after a byte order mark, which some editors put before it.
inline std::size_t after_byte_order_mark(const text_source& text) {
  char mark[3]{};
  text.read(0, mark, std::min<std::size_t>(text.size(), 3));
  return std::string_view(mark, 3) == "\xef\xbb\xbf" ? 3 : 0;
}

/// Throws input_error if the text is gzip-compressed.
inline void refuse_gzip(const text_source& text) {
  char magic[2]{};
  text.read(0, magic, std::min<std::size_t>(text.size(), 2));
  if (std::string_view(magic, 2) == "\x1f\x8b") fail(text.name(), "is gzip-compressed; decompress it first");
}

}  // namespace detail

/// Cuts the bytes from `begin`, the start of a line, to the end into `parts` ranges of whole lines, of
/// nearly equal size; some are empty if lines are long. Throws input_error as text_source::read does.
inline std::vector<interval> line_ranges(const text_source& text, std::size_t begin, int parts) {
  const interval all{static_cast<global_index>(begin), static_cast<global_index>(text.size())};
  const auto start_of_line = [&](global_index from) {  // the first one that is not before `from`
    char piece[4096];
    for (global_index at = from - 1; at < all.end;) {
      const auto count =
          static_cast<std::size_t>(std::min(all.end - at, static_cast<global_index>(sizeof piece)));
      text.read(static_cast<std::size_t>(at), piece, count);
      const std::size_t found = std::string_view(piece, count).find('\n');
      if (found != std::string_view::npos) return at + static_cast<global_index>(found) + 1;
      at += static_cast<global_index>(count);
    }
    return all.end;
  };
  std::vector<interval> ranges;
  for (global_index part = 0, from = all.begin; part < parts; ++part) {
    const global_index even = base::part_of(all, part, parts).end;
    const global_index to = part == parts - 1 ? all.end : even <= from ? from : start_of_line(even);
    ranges.push_back({from, to});
    from = to;
  }
  return ranges;
}

/// Throws input_error with the name of the text, the number of the line and the reason. Reads the text up to
/// the line, since lines are not counted before.
[[noreturn]] inline void fail_at(const text_source& text, const malformed_line& malformed) {
  std::ptrdiff_t line = 1;
  for_blocks(text, {0, static_cast<global_index>(malformed.position)}, [&](const text_block& block) {
    const auto bytes = block.lines.substr(0, malformed.position - block.position);  // not the added '\n'
    line += std::count(bytes.begin(), bytes.end(), '\n');
    return true;
  });
  detail::fail(text.name() + ":" + std::to_string(line), malformed.reason);
}

/// What was parsed of one range of lines.
template <class Part>
struct parsed_range {
  interval range;                         ///< of bytes
  Part part{};                            ///< of the lines before a malformed one
  std::optional<malformed_line> stopped;  ///< empty if no line is
};

/// Cuts the text from `begin`, the start of a line, into `threads` ranges of lines and parses each on its
/// own thread: parse(part, text_block) is called for the blocks of a range in turn, adds to the range's
/// Part, returns whether to go on, and throws malformed_line, which ends the range. Returns the ranges in
/// the order of the text, so that the caller finds the first malformed line for any number of threads.
/// Throws input_error if the text cannot be read, and what else `parse` throws.
template <class Part, class F>
std::vector<parsed_range<Part>> parse_ranges(const text_source& text, std::size_t begin, int threads,
                                             const F& parse, std::size_t block_bytes = text_block_bytes) {
  const std::vector<interval> ranges = line_ranges(text, begin, std::max(threads, 1));
  std::vector<parsed_range<Part>> parsed(ranges.size());
  local::run_parts(static_cast<int>(ranges.size()), [&](int thread) {
    const auto r = static_cast<std::size_t>(thread);
    parsed_range<Part> mine;  // on this thread's stack, apart from what other threads write
    mine.range = ranges[r];
    try {
      for_blocks(
          text, ranges[r], [&](const text_block& block) { return parse(mine.part, block); }, block_bytes);
    } catch (malformed_line& malformed) {
      mine.stopped = std::move(malformed);
    }
    parsed[r] = std::move(mine);
  });
  return parsed;
}

}  // namespace partita::io
