// SPDX-License-Identifier: Apache-2.0
#include "fat_binary.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>

namespace emulator {

namespace {

struct wrapper {
  std::int32_t magic, version;
  const unsigned char* data;
  const void* more;
};
struct header {
  std::uint32_t magic;
  std::uint16_t version, size;
  std::uint64_t bytes;
};
/// Before each piece of code. `size` bytes lie behind it, `compressed` of them used where flags say so.
struct entry {
  std::uint16_t kind, attributes;
  std::uint32_t header_size;
  std::uint64_t size;
  std::uint32_t compressed, options;
  std::uint16_t minor, major;
  std::uint32_t architecture, name_offset, name_length;
  std::uint64_t flags, zero, uncompressed;
};
static_assert(sizeof(entry) == 64);
constexpr std::int32_t wrapper_magic = 0x466243b1;
constexpr std::int32_t version_linked = 2;  ///< device code of several files, joined by nvlink
constexpr std::uint32_t header_magic = 0xba55ed50;
constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;

/// By the library that every Debian has for its packages.
bool decompress(const unsigned char* from, std::size_t bytes, std::string& to) {
  using function = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  static void* const library = ::dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  static const auto run =
      library == nullptr ? nullptr : reinterpret_cast<function>(::dlsym(library, "ZSTD_decompress"));
  return run != nullptr && run(to.data(), to.size(), from, bytes) == to.size();
}

ptx_image read(const entry& e, const unsigned char* code) {
  ptx_image image;
  image.architecture = static_cast<int>(e.architecture);
  if ((e.flags & flag_zstd) != 0) {
    image.text.resize(e.uncompressed);
    if (!decompress(code, e.compressed, image.text))
      image.problem =
          "its PTX is compressed and libzstd.so.1 is missing or refuses it: compile with nvcc --no-compress";
  } else if ((e.flags & flag_lz4) != 0) {
    image.problem = "its PTX is compressed as older toolkits do: compile with nvcc --no-compress";
  } else {
    image.text.assign(reinterpret_cast<const char*>(code), e.size);
  }
  image.text.resize(std::strlen(image.text.c_str()));
  return image;
}

}  // namespace

ptx_image find_ptx(const void* fat_binary_wrapper) {
  wrapper w;
  std::memcpy(&w, fat_binary_wrapper, sizeof w);
  if (w.magic != wrapper_magic) return {"", 0, "its fat binary has a format that is not known"};
  header h;
  std::memcpy(&h, w.data, sizeof h);
  if (h.magic != header_magic) return {"", 0, "its fat binary has a format that is not known"};
  ptx_image newest;
  const unsigned char* at = w.data + h.size;
  for (const unsigned char* const end = at + h.bytes; at < end;) {
    entry e;
    std::memcpy(&e, at, sizeof e);
    if (e.kind == kind_ptx && static_cast<int>(e.architecture) >= newest.architecture)
      newest = read(e, at + e.header_size);
    at += e.header_size + e.size;
  }
  if (w.version == version_linked && newest.text.empty() && newest.problem.empty())
    newest.problem = "its device code was linked on its own, without PTX: compile without -rdc=true";
  return newest;
}

}  // namespace emulator
