// SPDX-License-Identifier: Apache-2.0
#pragma once
// What products with sparse blocks must do anywhere: the reference's results, with long rows and none.
#include <doctest/doctest.h>

#include "reference/kernels.hpp"
#include "support/stage.hpp"

namespace test_support {

template <class T>
constexpr double law_tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

/// Contiguous, odd strides, strides that keep 16 bytes, and blocks that begin beside them.
inline const std::vector<placing> some_placings{{3, 0}, {0, 0}, {4, 0}, {4, 1}, {4, 2}, {2, 0}};

template <class T, class Device>
void check_spmm(const sparse<T>& a, local_index f, placing p) {
  for (const T beta : {T{0}, T{1}, T(-0.75)}) {
    block<T> x(a.cols, f, 1, p), y(a.rows, f, 2, placing{p.gap == 3 ? 1 : p.gap, p.lead});
    if (beta == 0) y.poison();
    INFO("k ", a.cols, " beta ", beta);
    agree_with<Device>(
        y, law_tolerance<T> * (1 + std::sqrt(double(a.end())) / 100),
        [&](auto& at, auto& r) { spmm(at.queue, at(a), at(x), beta, r.view()); },
        [&](auto& r) { reference::spmm(a.view(), x.view(), beta, r.view()); });
  }
}

template <class T, class Device>
void spmm_of_every_width() {
  for (local_index f = 1; f <= 40; ++f) check_spmm<T, Device>(sparse<T>(23, 19), f, {});
  for (const local_index f : {63, 64, 65, 100, 127, 128, 129, 256, 300})
    check_spmm<T, Device>(sparse<T>(23, 19), f, {});
}

/// A device may copy rows of x to where they are aligned, if it knows that they are read often.
template <class T, class Device>
void spmm_of_known_entries() {
  for (const local_index f : {1, 2, 3, 5, 6, 7, 8, 41, 47, 130})
    for (const placing p : some_placings) {
      const sparse<T> a(60, 9, static_cast<std::size_t>(f % 3));
      block<T> x(9, f, 1, p), y(60, f, 2, placing{p.gap, p.lead});
      for (const T beta : {T{0}, T(-0.75)}) {
        if (beta == 0) y.poison();
        agree_with<Device>(
            y, law_tolerance<T>,
            [&](auto& at, auto& r) {
              auto known = at(a);
              known.entries = a.end() - a.offsets.front();
              spmm(at.queue, known, at(x), beta, r.view());
            },
            [&](auto& r) { reference::spmm(a.view(), x.view(), beta, r.view()); });
        y = block<T>(60, f, 2, placing{p.gap, p.lead});
      }
    }
}

template <class T, class Device>
void spmm_of_many_rows_and_none() {
  for (const local_index f : {0, 1, 7, 32, 47, 130}) {
    for (const auto& [m, k] : std::vector<std::array<local_index, 2>>{{0, 5}, {5, 0}, {0, 0}, {1, 1}})
      check_spmm<T, Device>(sparse<T>(m, k), f, {});
    check_spmm<T, Device>(sparse<T>(3001, 400), f, {});
  }
}

template <class T, class Device>
void spmm_at_any_alignment() {
  for (const local_index f : {1, 2, 4, 6, 8, 16, 36})
    for (const placing p : some_placings)
      for (const std::size_t lead : {0, 1, 2, 3})
        check_spmm<T, Device>(sparse<T>(60, 40, lead, lead == 3 ? 1 : lead), f, p);
}

/// Rows that lie in many chunks, end where a chunk ends, or lie between very many empty ones.
template <class T, class Device>
void spmm_of_long_rows() {
  std::vector<local_index> one_long(1000, 1), many_empty(5000, 0), even(300, 63);
  one_long[500] = 20000;
  one_long[999] = 3000;
  many_empty[0] = 64;
  many_empty[4999] = 200;
  for (const local_index f : {1, 16, 18})
    for (const auto& lengths : {one_long, many_empty, even, std::vector<local_index>{7000}})
      check_spmm<T, Device>(sparse<T>(lengths, 900), f, placing{0, 0});
}

template <class T, class Device>
void check_spmm_transposed(const sparse<T>& unsorted, local_index f, placing p) {
  const sparse<T> a = unsorted.ascending();
  for (const auto& [alpha, beta] :
       {std::pair(T{1}, T{0}), std::pair(T(-0.75), T{1}), std::pair(T{1}, T(0.5))}) {
    block<T> x(a.rows, f, 1, p), y(a.cols, f, 2, placing{p.gap == 3 ? 1 : p.gap, p.lead});
    if (beta == 0) y.poison();
    INFO("m ", a.rows, " alpha ", alpha, " beta ", beta);
    agree_with<Device>(
        y, law_tolerance<T> * (1 + std::sqrt(double(a.end())) / 100),
        [&](auto& at, auto& r) { spmm_transposed(at.queue, at(a), at(x), alpha, beta, r.view()); },
        [&](auto& r) { reference::spmm_transposed(a.view(), x.view(), alpha, beta, r.view()); });
  }
}

template <class T, class Device>
void spmm_of_transposed_blocks() {
  for (const local_index f : {0, 1, 2, 3, 7, 16, 20, 33, 64, 65, 130, 300})
    check_spmm_transposed<T, Device>(sparse<T>(23, 19), f, {});
  for (const auto& [m, k] :
       std::vector<std::array<local_index, 2>>{{0, 5}, {5, 0}, {0, 0}, {1, 1}, {3, 500}, {3001, 400}})
    for (const local_index f : {1, 18}) check_spmm_transposed<T, Device>(sparse<T>(m, k), f, {});
  for (const placing p : some_placings)
    for (const std::size_t lead : {0, 1, 2, 3})
      check_spmm_transposed<T, Device>(sparse<T>(60, 40, lead, lead), 16, p);
  std::vector<local_index> one_long(1000, 1);
  one_long[500] = 20000;
  check_spmm_transposed<T, Device>(sparse<T>(one_long, 900), 18, placing{0, 0});
}

/// prepare(queue) is called before each product.
template <class T, class Device, class Prepare>
void spmm_with_everything_fused(const Prepare& prepare) {
  const sparse<T> a(301, 90);
  for (const local_index f : {1, 16, 33, 100}) {
    const block<T> x(90, f, 1, placing{}), y(301, f, 2, placing{});
    const std::vector<T> bias = block<T>(1, f, 5, 0).values;
    for (const auto& [alpha, beta] :
         {std::pair(T{1}, T{0}), std::pair(T{1}, T(0.5)), std::pair(T(-0.75), T{2})})
      for (const bool biased : {false, true})
        for (const bool relu : {false, true}) {
          INFO("alpha ", alpha, " beta ", beta, " biased ", biased, " relu ", relu);
          const auto fusion = [&](const T* line) {
            const partita::base::dropped<T> drop{7, std::uint64_t{1} << 51, T(1.25)};
            partita::local::spmm_epilogue<T> all{alpha, beta, biased ? line : nullptr, relu};
            if (biased) all.drop = {drop, 1000, 3};
            return all;
          };
          agree_with<Device>(
              y, law_tolerance<T>,
              [&](auto& at, auto& r) {
                prepare(at.queue);
                spmm_fused(at.queue, at(a), at(x), fusion(at(bias)), r.view());
              },
              [&](auto& r) { reference::spmm_fused(a.view(), x.view(), fusion(bias.data()), r.view()); });
        }
  }
}
template <class T, class Device>
void spmm_with_everything_fused() {
  spmm_with_everything_fused<T, Device>([](const auto&) {});
}

}  // namespace test_support
