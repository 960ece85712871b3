// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Maps .npy files into memory, so that a rank reads only the pages it needs. Needs POSIX.

#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "partita/io/array.hpp"
#include "partita/io/changed_files.hpp"
#include "partita/io/descriptor.hpp"
#include "partita/io/npy.hpp"

namespace partita::io {

/// An array, in C order, whose values may be in a mapped file.
template <class T>
struct mapped_array {
  std::vector<global_index> shape;  ///< empty for a scalar
  array<T> values;                  ///< product of the shape
};

namespace detail {

/// Unmaps the pages within these bytes until they are read again.
inline void forget_pages(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

/// The file, if its values have this type, its alignment and C order, and if it can be mapped; otherwise
/// null.
inline std::shared_ptr<const std::byte> mapped_file(const std::filesystem::path& path,
                                                    const npy_header& header, npy_type type) {
  const bool as_stored =
      (header.descr == type.descr && header.descr[0] != '>') || (header.descr == "|b1" && type.bytes == 1);
  const bool in_order = !header.fortran_order || header.shape.size() < 2;
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  if (!as_stored || !in_order || none || header.data_offset % type.bytes != 0 || header.count() == 0)
    return nullptr;
  check_npy_size(header, size - header.data_offset, name_of_file(path));
  const std::size_t bytes = header.data_offset + static_cast<std::size_t>(header.count()) * type.bytes;
  const auto opened = std::make_shared<const descriptor>(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  struct stat status {};
  if (opened->number() < 0) return nullptr;
  const auto file = watch(opened, path);
  if (::fstat(file->number(), &status) != 0 || static_cast<std::uintmax_t>(status.st_size) < bytes)
    return nullptr;
  void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file->number(), 0);
  if (begin == MAP_FAILED) return nullptr;
  return {static_cast<const std::byte*>(begin),
          [begin, bytes, file](const std::byte*) { ::munmap(begin, bytes); }};
}

}  // namespace detail

/// The array in the .npy file `path`, as read_npy reads it. A file in C order is mapped: its pages are read
/// when their values are used, and shared by all processes of a machine. The file must not change while the
/// array exists, see changed_file. Throws input_error as read_npy does.
template <npy_value T>
mapped_array<T> map_npy(const std::filesystem::path& path) {
  const npy_header header = read_npy_header(path);
  const auto count = static_cast<std::size_t>(header.count());
  if (const auto file = detail::mapped_file(path, header, detail::npy_type_of<T>)) {
    const auto* const begin = reinterpret_cast<const T*>(file.get() + header.data_offset);
    return {header.shape, {std::shared_ptr<const T>(file, begin), count, detail::forget_pages}};
  }
  npy_array<T> read = read_npy<T>(path);
  return {std::move(read.shape), std::move(read.values)};
}

}  // namespace partita::io
