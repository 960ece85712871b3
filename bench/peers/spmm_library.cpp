// SPDX-License-Identifier: Apache-2.0
/// What spmm.py calls: the library's local SpMM, and what the machine can do at best, on the same threads.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "partita/local/kernels.hpp"
#include "partita/local/parallel.hpp"

namespace {

using partita::local_index;

template <class T>
void product(int threads, local_index rows, const local_index* offsets, const local_index* columns,
             const T* values, local_index f, const T* x, T* y) {
  const partita::device_queue<partita::host> q(threads);
  const partita::local::csr_view<T> a{rows, rows, offsets, columns, values};
  spmm(q, a, partita::matrix_view<const T>{x, rows, f}, 0, partita::matrix_view<T>{y, rows, f});
}

/// A cache line, as words that are added in one cycle.
using line [[gnu::vector_size(64), gnu::may_alias]] = std::int32_t;
constexpr int line_words = 16;

/// Lines of x, [n][lines].
template <int lines>
using rows_of = const line (*)[lines];

/// A checksum of row columns[e] of x, for e in [begin, end). Rows are prefetched `ahead` entries before they
/// are read, and the columns themselves, which the processor does not fetch in time among random reads.
template <int lines>
std::int32_t read_rows(const local_index* columns, std::int64_t begin, std::int64_t end, int ahead,
                       rows_of<lines> x) {
  constexpr std::int64_t of_columns = 512;
  line sum{};
  for (std::int64_t e = begin; e < end; ++e) {
    if (e % line_words == 0) __builtin_prefetch(columns + std::min(e + of_columns, end - 1));
    if (ahead > 0) {
      const line* const next = x[columns[e < end - ahead ? e + ahead : end - 1]];
      for (int j = 0; j < lines; ++j) __builtin_prefetch(next + j);
    }
    const line* const row = x[columns[e]];
    for (int j = 0; j < lines; ++j) sum += row[j];
  }
  std::int32_t words = 0;
  for (int j = 0; j < line_words; ++j) words ^= sum[j];
  return words;
}

/// The same for all entries; threads take ranges of them as they become free.
template <int lines>
std::int32_t read_all(int threads, std::int64_t entries, const local_index* columns, int ahead,
                      const float* x) {
  const auto rows = reinterpret_cast<rows_of<lines>>(x);
  const std::int64_t ranges = 16 * threads;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int32_t> words{0};
  partita::local::run_parts(threads, [&](int) {
    for (std::int64_t i; (i = next.fetch_add(1)) < ranges;)
      words.fetch_xor(
          read_rows<lines>(columns, entries * i / ranges, entries * (i + 1) / ranges, ahead, rows));
  });
  return words;
}

}  // namespace

extern "C" {

/// The compiler, and the vector instructions that it may use.
[[gnu::visibility("default")]] const char* build() {
#if defined(__AVX512F__)
  return __VERSION__ ", AVX-512";
#elif defined(__AVX2__)
  return __VERSION__ ", AVX2";
#else
  return __VERSION__ ", compiled without AVX";
#endif
}

/// y = a x; a is (rows, rows), x and y are (rows, f).
[[gnu::visibility("default")]] void spmm_f32(int threads, local_index rows, const local_index* offsets,
                                             const local_index* columns, const float* values, local_index f,
                                             const float* x, float* y) {
  product(threads, rows, offsets, columns, values, f, x, y);
}
[[gnu::visibility("default")]] void spmm_f64(int threads, local_index rows, const local_index* offsets,
                                             const local_index* columns, const double* values, local_index f,
                                             const double* x, double* y) {
  product(threads, rows, offsets, columns, values, f, x, y);
}

/// Reads the rows of x (n, f) that entries name, in their order, and nothing else but these names, prefetched
/// `ahead` entries before they are read, or not for 0. f is 16, 32, 64, 128 or 256, and x begins at a
/// multiple of 64 bytes.
[[gnu::visibility("default")]] std::int32_t gather(int threads, std::int64_t entries,
                                                   const local_index* columns, local_index f, const float* x,
                                                   int ahead) {
  switch (f / line_words) {
    case 1:
      return read_all<1>(threads, entries, columns, ahead, x);
    case 2:
      return read_all<2>(threads, entries, columns, ahead, x);
    case 4:
      return read_all<4>(threads, entries, columns, ahead, x);
    case 8:
      return read_all<8>(threads, entries, columns, ahead, x);
    default:
      return read_all<16>(threads, entries, columns, ahead, x);
  }
}

/// Copies so many bytes, each thread its part.
[[gnu::visibility("default")]] void copy(int threads, std::int64_t bytes, const char* from, char* to) {
  partita::local::run_parts(threads, [=](int part) {
    const std::int64_t begin = bytes * part / threads, end = bytes * (part + 1) / threads;
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // extern "C"
