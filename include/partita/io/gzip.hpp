// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Packs and unpacks text as gzip does. Needs zlib.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <zlib.h>

#include "partita/base/error.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/text_ranges.hpp"
#include "partita/io/unpacked_size.hpp"

namespace partita::io {

namespace detail {

/// Unpacks one gzip member after the other. read(to, count) copies the next bytes of the file.
template <class Read>
class gzip_reader {
 public:
  gzip_reader(const std::string& name, std::size_t packed, std::size_t most, Read read)
      : name_(name),
        left_(packed),
        most_(most),
        read_(std::move(read)),
        chunk_(std::min(packed, std::size_t{1} << 16)) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) fail(name_, "cannot be unpacked: zlib has no memory");
  }
  gzip_reader(const gzip_reader&) = delete;
  gzip_reader& operator=(const gzip_reader&) = delete;
  ~gzip_reader() { inflateEnd(&stream_); }

  std::string operator()() {
    std::string text;
    std::size_t size = 0;
    const auto room = [&] {
      if (size == text.size()) grow(text);
      return std::span<char>(text).subspan(size);
    };
    unpack(room, [&](std::span<const char> next) { size += next.size(); });
    text.resize(size);
    return text;
  }

  /// Calls take(std::string_view) for one piece after the other.
  template <class Take>
  void for_pieces(const Take& take) {
    std::vector<char> piece(std::size_t{1} << 16);
    unpack([&] { return std::span<char>(piece); },
           [&](std::span<const char> next) { take(std::string_view(next.data(), next.size())); });
  }

 private:
  /// Unpacks into room(), if anything fits, and then calls take(the new part of it), again and again.
  template <class Room, class Take>
  void unpack(const Room& room, const Take& take) {
    std::size_t size = 0;
    for (bool whole = false; !whole;) {
      if (stream_.avail_in == 0) refill();
      constexpr std::size_t at_once = std::numeric_limits<uInt>::max();
      std::span<char> to = room();
      to = to.first(std::min(to.size(), at_once));
      stream_.next_out = reinterpret_cast<Bytef*>(to.data());
      stream_.avail_out = static_cast<uInt>(to.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::span<const char> next = to.first(to.size() - stream_.avail_out);
      size += next.size();
      if (size > most_) fail(name_, "has more than " + limit_text(most_));
      if (status != Z_OK && status != Z_STREAM_END)
        fail(name_,
             std::string("cannot be unpacked: ") + (stream_.msg != nullptr ? stream_.msg : "it is damaged"));
      take(next);
      if (status == Z_STREAM_END) whole = !begin_next();
    }
  }

  void refill() {
    if (left_ == 0) fail(name_, "cannot be unpacked: it ends too early");
    const std::size_t count = std::min(chunk_.size(), left_);
    read_(chunk_.data(), count);
    left_ -= count;
    stream_.next_in = reinterpret_cast<Bytef*>(chunk_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }

  /// Up to one byte more than is allowed, which shows whether there is more.
  void grow(std::string& text) const {
    text.resize(std::min(most_ + 1, std::max<std::size_t>(2 * text.size(), std::size_t{1} << 16)));
  }

  /// Returns whether another member follows. Zeros, which fill tapes, are not a member.
  bool begin_next() {
    for (;;) {
      if (stream_.avail_in == 0) {
        if (left_ == 0) return false;
        refill();
      }
      if (*stream_.next_in != 0) break;
      ++stream_.next_in, --stream_.avail_in;
    }
    inflateReset(&stream_);
    return true;
  }

  const std::string& name_;
  std::size_t left_, most_;
  Read read_;
  std::vector<char> chunk_;
  z_stream stream_{};
};

}  // namespace detail

/// Packs text as gzip does, piece by piece.
class gzip_packer {
 public:
  /// Throws error if zlib has no memory.
  gzip_packer() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw error("zlib has no memory");
  }
  gzip_packer(const gzip_packer&) = delete;
  gzip_packer& operator=(const gzip_packer&) = delete;
  ~gzip_packer() { deflateEnd(&stream_); }

  /// Calls take(std::span<const std::byte>) for what has been packed so far; the rest of `text`, which is
  /// shorter than 4 GiB, may come later.
  template <class Take>
  void pack(std::string_view text, const Take& take) {
    run(text, Z_NO_FLUSH, take);
  }
  /// Calls take for the rest. Nothing is packed afterwards.
  template <class Take>
  void finish(const Take& take) {
    run({}, Z_FINISH, take);
  }

 private:
  template <class Take>
  void run(std::string_view text, int flush, const Take& take) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&stream_, flush);
      take(std::as_bytes(std::span(packed_).first(packed_.size() - stream_.avail_out)));
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  std::vector<char> packed_ = std::vector<char>(std::size_t{1} << 16);
};

/// The text that gzip has packed into `packed`, one member or several, which `name` denotes in messages.
/// Local. Throws input_error if it is damaged (gzip keeps a checksum), ends too early, or holds more than
/// `most` bytes.
inline std::string unpack_gzip(std::span<const char> packed, const std::string& name, std::size_t most) {
  const auto read = [at = packed.data()](char* to, std::size_t count) mutable {
    std::copy_n(at, count, to);
    at += count;
  };
  return detail::gzip_reader(name, packed.size(), most, read)();
}
inline std::string unpack_gzip(std::span<const char> packed, const std::string& name) {
  return unpack_gzip(packed, name, most_unpacked(packed.size()));
}

namespace detail {

/// Calls use(reader) for the file `path`.
template <class Use>
auto with_gzip_file(const std::filesystem::path& path, std::optional<std::size_t> unpack_limit,
                    const Use& use) {
  const text_source file(path);
  const auto read = [&, at = std::size_t{0}](char* to, std::size_t count) mutable {
    file.read(at, to, count);
    at += count;
  };
  gzip_reader reader(file.name(), file.size(), most_unpacked(file.size(), unpack_limit), read);
  return use(reader);
}

}  // namespace detail

/// The text in the gzip file `path`, of at most `unpack_limit` bytes, or as many as most_unpacked says.
/// Local. Throws input_error as unpack_gzip does, and if the file cannot be opened or read.
inline std::string read_gzip(const std::filesystem::path& path,
                             std::optional<std::size_t> unpack_limit = {}) {
  return detail::with_gzip_file(path, unpack_limit, [](auto& reader) { return reader(); });
}

/// Calls take(std::string_view) for one piece of that text after the other, each at most 64 KiB long; the
/// text is never all in memory. Local. Throws as read_gzip does, and what take throws, after earlier pieces.
template <class Take>
void for_gzip_pieces(const std::filesystem::path& path, const Take& take,
                     std::optional<std::size_t> unpack_limit = {}) {
  detail::with_gzip_file(path, unpack_limit, [&](auto& reader) { reader.for_pieces(take); });
}

}  // namespace partita::io
