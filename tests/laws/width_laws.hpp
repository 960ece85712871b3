// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host kernels of sparse blocks at every width up to 70, on operands whose allocations end with their last
// element, so that valgrind and the address sanitizer see a read behind it; and rows of hubs, which threads
// share.
#include <doctest/doctest.h>
#include <iterator>

#include "partita/local/kernels.hpp"
#include "reference/kernels.hpp"
#include "support/blocks.hpp"
#include "support/sanitized.hpp"

namespace test_support {

inline constexpr local_index widest = 70;

/// An allocation of these elements and no more.
template <class T>
class exact_copy {
 public:
  explicit exact_copy(const std::vector<T>& from) : size_(from.size()), memory_(new T[from.size()]) {
    std::copy(from.begin(), from.end(), memory_.get());
  }

  T* data() const { return memory_.get(); }
  std::vector<T> values() const { return {data(), data() + size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<T[]> memory_;
};

/// (rows, cols), without gaps.
template <class T>
struct exact_block {
  exact_block(local_index m, local_index n, std::uint64_t seed)
      : rows(m), cols(n), memory(block<T>(m, n, seed, 0).values) {}
  matrix_view<T> view() const { return {memory.data(), rows, cols}; }

  local_index rows, cols;
  exact_copy<T> memory;
};

/// Offsets from 0 on, with `heads` values per entry.
template <class T>
struct exact_sparse {
  exact_sparse(const std::vector<local_index>& lengths, local_index k, local_index heads = 1)
      : exact_sparse(sparse_block<T>(lengths, k).ascending(), heads) {}
  exact_sparse(const sparse_block<T>& from, local_index heads)
      : rows(from.rows),
        cols(from.cols),
        offsets(moved(from.offsets)),
        columns(tail(from.columns)),
        values(block<T>(1, heads * offsets.data()[rows], 6, 0).values) {}
  partita::local::csr_view<T> view() const {
    return {rows, cols, offsets.data(), columns.data(), values.data()};
  }

  local_index rows, cols;
  exact_copy<local_index> offsets, columns;
  exact_copy<T> values;

 private:
  static std::vector<local_index> moved(std::vector<local_index> list) {
    for (local_index& o : list) o -= 2;
    return list;
  }
  static std::vector<local_index> tail(const std::vector<local_index>& list) {
    return {list.begin() + 2, list.end()};
  }
};

/// Short rows, empty ones at both ends, and one of 37 entries.
inline std::vector<local_index> lengths_of_all_kinds() {
  std::vector<local_index> lengths{0, 1, 2, 3, 4, 5, 0, 37, 8, 9, 1, 0};
  return lengths;
}

/// The heads that `f` columns may have.
inline std::vector<local_index> heads_of(local_index f) {
  std::vector<local_index> heads;
  for (const local_index h : {1, 2, 3, 8})
    if (f % h == 0) heads.push_back(h);
  return heads;
}

template <class T>
void check_near(const exact_block<T>& got, const exact_block<T>& expected, double allowed) {
  CHECK(distance(got.memory.values(), expected.memory.values()) < allowed);
}

template <class T>
inline constexpr double width_tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

template <class T>
void products_of_every_width() {
  const partita::device_queue<partita::host> q(2);
  const exact_sparse<T> a(lengths_of_all_kinds(), 11);
  const auto m = a.rows, k = a.cols;
  for (local_index f = 1; f <= widest; ++f)
    for (const T beta : {T{0}, T(0.5)}) {
      INFO("f ", f, " beta ", beta);
      const exact_block<T> x(k, f, 1), y(m, f, 2), y_expected(m, f, 2), bias(1, f, 3);
      const partita::local::spmm_epilogue<T> fusion{T(1.5), beta, bias.memory.data(), true};
      spmm_fused(q, a.view(), x.view(), fusion, y.view());
      partita::reference::spmm_fused(a.view(), x.view(), fusion, y_expected.view());
      check_near(y, y_expected, width_tolerance<T>);
      const exact_block<T> z(m, f, 4), to(k, f, 5), to_expected(k, f, 5);
      spmm_transposed(q, a.view(), z.view(), T(0.5), beta, to.view());
      partita::reference::spmm_transposed(a.view(), z.view(), T(0.5), beta, to_expected.view());
      check_near(to, to_expected, width_tolerance<T>);
    }
}

template <class T>
void edge_products_of_every_width() {
  const partita::device_queue<partita::host> q(2);
  for (local_index f = 1; f <= widest; ++f)
    for (const local_index heads : heads_of(f)) {
      INFO("f ", f, " heads ", heads);
      const exact_sparse<T> a(lengths_of_all_kinds(), 11, heads);
      const partita::local::csr_view<T> pattern{a.rows, a.cols, a.offsets.data(), a.columns.data(), nullptr};
      const partita::local::head_slice s{heads, f / heads, 0};
      const exact_block<T> x(a.cols, f, 1), y(a.rows, f, 2), y_expected(a.rows, f, 2);
      edge_multiply(q, pattern, s, a.values.data(), x.view(), T(0.5), y.view());
      partita::reference::edge_multiply(pattern, s, a.values.data(), x.view(), T(0.5), y_expected.view());
      check_near(y, y_expected, width_tolerance<T>);
      const local_index entries = pattern.nonzeros();
      const exact_block<T> dots(1, heads * entries, 7), dots_expected(1, heads * entries, 7);
      edge_dot(q, pattern, s, y.view(), x.view(), T(0.5), dots.memory.data());
      partita::reference::edge_dot(pattern, s, y.view(), x.view(), T(0.5), dots_expected.memory.data());
      check_near(dots, dots_expected, width_tolerance<T>);
    }
}

template <class T>
void maxima_of_every_width() {
  const partita::device_queue<partita::host> q(2);
  const exact_sparse<T> a(lengths_of_all_kinds(), 11);
  for (local_index f = 1; f <= widest; ++f) {
    INFO("f ", f);
    const exact_block<T> x(a.cols, f, 1), y(a.rows, f, 2), expected(a.rows, f, 2);
    const exact_block<local_index> arg(a.rows, f, 3), arg_expected(a.rows, f, 3);
    max_aggregate(q, a.view(), x.view(), y.view(), arg.view());
    partita::reference::max_aggregate(a.view(), x.view(), expected.view(), arg_expected.view());
    CHECK(y.memory.values() == expected.memory.values());
    CHECK(arg.memory.values() == arg_expected.memory.values());
    const exact_block<T> dx(a.cols, f, 4), dx_expected(a.cols, f, 4);
    max_scatter(q, a.view(), arg.view(), y.view(), dx.view());
    partita::reference::max_scatter(a.view(), arg.view(), y.view(), dx_expected.view());
    CHECK(dx.memory.values() == dx_expected.memory.values());
  }
}

/// Zeros of both signs are equal, the first NaN counts, and infinities do.
template <class T>
void maxima_of_special_numbers_of_every_width() {
  using limits = std::numeric_limits<T>;
  const T numbers[] = {0,
                       -T{0},
                       limits::infinity(),
                       -limits::infinity(),
                       limits::max(),
                       limits::lowest(),
                       limits::denorm_min(),
                       -limits::denorm_min(),
                       1,
                       -1};
  constexpr std::size_t count = std::size(numbers);
  const partita::device_queue<partita::host> q(2);
  const exact_sparse<T> a(lengths_of_all_kinds(), 11);
  for (local_index f = 1; f <= widest; ++f) {
    INFO("f ", f);
    const exact_block<T> x(a.cols, f, 1), y(a.rows, f, 2), expected(a.rows, f, 2);
    for (std::size_t k = 0; k < x.memory.values().size(); ++k)
      x.memory.data()[k] = k % 31 == 5 ? limits::quiet_NaN() : numbers[(k * k + 3 * k + k / 7) % count];
    const exact_block<local_index> arg(a.rows, f, 3), arg_expected(a.rows, f, 3);
    max_aggregate(q, a.view(), x.view(), y.view(), arg.view());
    partita::reference::max_aggregate(a.view(), x.view(), expected.view(), arg_expected.view());
    CHECK(same_bits(y.memory.values(), expected.memory.values()));
    CHECK(arg.memory.values() == arg_expected.memory.values());
  }
}

/// Row lengths of a star, whose centre has three quarters of all entries, among empty rows and short ones.
inline std::vector<local_index> star_lengths(local_index centre) {
  std::vector<local_index> lengths(static_cast<std::size_t>(centre / 4), 1);
  for (std::size_t i = 0; i < lengths.size(); i += 7) lengths[i] = 0;
  lengths[lengths.size() / 3] = centre;
  lengths.back() = 9000;
  return lengths;
}

/// Every fourth one drops a quarter.
template <class T>
partita::local::block_dropout<T> some_dropout(int round) {
  if (round % 4 != 1) return {};
  return {{12345, std::uint64_t{1} << 51, T(4) / 3}};
}

/// Results of products with a star in one bit pattern whatever the number of threads, and right.
template <class T>
void stars_have_the_same_bits() {
  const exact_sparse<T> a(star_lengths(sanitized ? 12'000 : 40'001), 500);
  std::vector<local_index> widths{1, 16, 33, 70};
  if (!sanitized)
    for (widths.clear(); static_cast<local_index>(widths.size()) < widest;)
      widths.push_back(static_cast<local_index>(widths.size()) + 1);
  int round = 0;
  for (const local_index f : widths) {
    const exact_block<T> x(a.cols, f, 1), bias(1, f, 3), expected(a.rows, f, 2);
    const bool biased = ++round % 2 == 0, relu = round % 3 == 0;
    const T beta = round % 5 < 2 ? T{0} : T(-0.75), alpha = round % 4 == 0 ? T(1.5) : T{1};
    const partita::local::spmm_epilogue<T> fusion{alpha, beta, biased ? bias.memory.data() : nullptr, relu,
                                                  some_dropout<T>(round)};
    partita::reference::spmm_fused(a.view(), x.view(), fusion, expected.view());
    std::vector<T> first;
    for (const int threads : {1, 2, 3, 5, 8}) {
      INFO("f ", f, " threads ", threads, " beta ", beta, " biased ", biased, " relu ", relu);
      const exact_block<T> y(a.rows, f, 2);
      spmm_fused(partita::device_queue<partita::host>(threads), a.view(), x.view(), fusion, y.view());
      if (first.empty()) {
        first = y.memory.values();
        CHECK(distance(first, expected.memory.values()) < 20 * width_tolerance<T>);
      }
      CHECK(same_bits(y.memory.values(), first));
    }
  }
}

template <class T>
void edge_products_of_stars_have_the_same_bits() {
  for (const partita::local::head_slice s :
       {partita::local::head_slice{1, 20, 0}, {4, 16, 0}, {8, 8, 0}, {3, 5, 2}}) {
    const exact_sparse<T> a(star_lengths(sanitized ? 12'000 : 40'001), 500, s.heads);
    const local_index f = s.heads * s.head_width - s.first_col;
    const exact_block<T> x(a.cols, f, 1), expected(a.rows, f, 2);
    partita::reference::edge_multiply(a.view(), s, a.values.data(), x.view(), T(0.5), expected.view());
    std::vector<T> first;
    for (const int threads : {1, 2, 3, 5, 8}) {
      INFO("heads ", s.heads, " of ", s.head_width, " threads ", threads);
      const exact_block<T> y(a.rows, f, 2);
      edge_multiply(partita::device_queue<partita::host>(threads), a.view(), s, a.values.data(), x.view(),
                    T(0.5), y.view());
      if (first.empty()) {
        first = y.memory.values();
        CHECK(distance(first, expected.memory.values()) < 20 * width_tolerance<T>);
      }
      CHECK(same_bits(y.memory.values(), first));
    }
  }
}

}  // namespace test_support
