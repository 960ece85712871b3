// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Zip archives of .npy files. Needs libzip.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <zip.h>

#include "partita/base/index.hpp"
#include "partita/io/npy.hpp"
#include "partita/io/quote.hpp"
#include "partita/io/unpacked_size.hpp"
#include "partita/io/whole_file.hpp"

namespace partita::io::detail {

/// libzip's description of an error.
class zip_reason {
 public:
  zip_reason() { zip_error_init(&error_); }
  zip_reason(const zip_reason&) = delete;
  zip_reason& operator=(const zip_reason&) = delete;
  ~zip_reason() { zip_error_fini(&error_); }

  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_;
};

/// A zip archive opened for reading.
class npz_archive {
 public:
  explicit npz_archive(const std::filesystem::path& path, std::optional<std::size_t> unpack_limit = {})
      : name_(name_of_file(path)) {
    std::error_code status;
    most_ = most_unpacked(static_cast<std::size_t>(std::filesystem::file_size(path, status)), unpack_limit);
    zip_reason reason;
    open(zip_source_file_create(name_.c_str(), 0, -1, reason.get()), reason);
  }

  /// An archive in memory, which must outlive this object. `name` denotes it in messages.
  npz_archive(std::span<const std::byte> bytes, std::string name,
              std::optional<std::size_t> unpack_limit = {})
      : name_(std::move(name)), most_(most_unpacked(bytes.size(), unpack_limit)) {
    zip_reason reason;
    open(zip_source_buffer_create(bytes.data(), bytes.size(), 0, reason.get()), reason);
  }

  const std::string& name() const { return name_; }

  std::string entry_name(const std::string& entry) const { return name_ + ", entry " + entry; }

  bool contains(const std::string& entry) const {
    return zip_name_locate(archive_.get(), (entry + ".npy").c_str(), 0) >= 0;
  }

  /// The header of an array; no more is unpacked than is likely to contain it.
  npy_header header(const std::string& entry) const {
    return parse_npy_header(read(entry, true), entry_name(entry));
  }

  /// The decompressed bytes of one array, or its beginning; read in chunks rather than trusting the size in
  /// the archive, and stopped if there are more than the array's own header says.
  std::vector<std::byte> read(const std::string& entry, bool beginning = false) const {
    if (!contains(entry)) fail(name_, "has no entry " + entry);
    const std::unique_ptr<zip_file_t, close_file> file(
        zip_fopen(archive_.get(), (entry + ".npy").c_str(), 0));
    if (!file) fail(entry_name(entry), "cannot be unpacked");
    std::vector<std::byte> bytes;
    constexpr std::size_t chunk = std::size_t{1} << 16;
    std::size_t most = 0;
    for (std::size_t size = 0;;) {
      bytes.resize(size + chunk);
      const zip_int64_t got = zip_fread(file.get(), bytes.data() + size, chunk);
      if (got < 0) fail(entry_name(entry), "cannot be unpacked");
      size += static_cast<std::size_t>(got);
      if (size > most_) fail(entry_name(entry), "has more than " + limit_text(most_));
      bytes.resize(size);
      if (got == 0 || (beginning && size >= chunk)) return bytes;
      if (size <= chunk) most = promised(bytes);
      if (size > most) return bytes;  // their reader reports it
      if (most > most_ && most < std::numeric_limits<std::size_t>::max())
        fail(entry_name(entry), "takes " + std::to_string(most) + " bytes, more than " + limit_text(most_));
    }
  }

 private:
  /// How many bytes the header at the beginning announces; any number if there is no header.
  static std::size_t promised(std::span<const std::byte> bytes) {
    try {
      const npy_header header = parse_npy_header(bytes, "");
      return header.data_offset + static_cast<std::size_t>(header.count()) * header.item_size;
    } catch (const input_error&) {
      return std::numeric_limits<std::size_t>::max();
    }
  }

  struct discard {
    void operator()(zip_t* archive) const { zip_discard(archive); }
  };
  struct close_file {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };

  void open(zip_source_t* source, zip_reason& reason) {
    if (source != nullptr) archive_.reset(zip_open_from_source(source, ZIP_RDONLY, reason.get()));
    if (archive_) return;
    if (source != nullptr) zip_source_free(source);
    fail(name_, "is not a zip archive that can be read (" + reason.text() + ")");
  }

  std::string name_;
  std::size_t most_ = 0;  ///< bytes that an entry may have
  std::unique_ptr<zip_t, discard> archive_;
};

/// Makes an archive in memory, uncompressed. The data that are added must outlive this object.
class npz_writer {
 public:
  explicit npz_writer(const std::string& name) : name_(name) {
    zip_reason reason;
    content_.reset(zip_source_buffer_create(nullptr, 0, 0, reason.get()));
    if (content_) archive_ = zip_open_from_source(content_.get(), ZIP_TRUNCATE, reason.get());
    if (archive_ == nullptr) fail(name_, "cannot be written (" + reason.text() + ")");
    zip_source_keep(content_.get());  // closing the archive gives up one of two
  }
  npz_writer(const npz_writer&) = delete;
  npz_writer& operator=(const npz_writer&) = delete;
  ~npz_writer() {
    if (archive_ != nullptr) zip_discard(archive_);
  }

  /// A vector.
  template <class T>
  void add(const std::string& entry, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    add(entry, npy_header_text<T>({static_cast<global_index>(values.size())}, bytes.size(), name_), bytes);
  }

  /// A text as a scalar.
  void add_text(const std::string& entry, const std::string& text) {
    std::string header =
        "{'descr': '|S" + std::to_string(text.size()) + "', 'fortran_order': False, 'shape': (), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    add(entry,
        std::string{'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(header.size() + 1), 0} + header +
            '\n' + text,
        {});
  }

  void write_to(const std::filesystem::path& path) {
    if (zip_close(archive_) != 0)
      fail(name_, std::string("cannot be written (") + zip_strerror(archive_) + ")");
    archive_ = nullptr;
    if (zip_source_open(content_.get()) != 0) fail(name_, "cannot be written (libzip has lost it)");
    write_whole_file(path, [&](const auto& write) {
      std::vector<std::byte> piece(std::size_t{1} << 20);
      zip_int64_t got = 0;
      while ((got = zip_source_read(content_.get(), piece.data(), piece.size())) > 0)
        write(std::span<const std::byte>(piece).first(static_cast<std::size_t>(got)));
      if (got < 0) fail(name_, "cannot be written (libzip has lost it)");
    });
    zip_source_close(content_.get());
  }

 private:
  struct free_source {
    void operator()(zip_source_t* source) const { zip_source_free(source); }
  };

  void add(const std::string& entry, std::string header, std::span<const std::byte> bytes) {
    const std::string& kept = headers_.emplace_back(std::move(header));
    const auto fragment = [](const void* data, std::size_t size) {
      return zip_buffer_fragment_t{static_cast<zip_uint8_t*>(const_cast<void*>(data)), size};
    };
    const std::array<zip_buffer_fragment_t, 2> parts{fragment(kept.data(), kept.size()),
                                                     fragment(bytes.data(), bytes.size())};
    zip_source_t* const source = zip_source_buffer_fragment(archive_, parts.data(), bytes.empty() ? 1 : 2, 0);
    const zip_int64_t place =
        source == nullptr ? -1 : zip_file_add(archive_, (entry + ".npy").c_str(), source, 0);
    if (place < 0 && source != nullptr) zip_source_free(source);
    const auto at = static_cast<zip_uint64_t>(place);
    constexpr zip_uint16_t midnight = 0, first_of_january_1980 = 0x21;  // the same bytes at any time
    if (place < 0 || zip_set_file_compression(archive_, at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive_, at, midnight, first_of_january_1980, 0) != 0)
      fail(name_, std::string("cannot be written (") + zip_strerror(archive_) + ")");
  }

  std::string name_;
  std::list<std::string> headers_;
  std::unique_ptr<zip_source_t, free_source> content_;
  zip_t* archive_ = nullptr;
};

}  // namespace partita::io::detail
