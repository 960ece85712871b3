// SPDX-License-Identifier: Apache-2.0
#pragma once
// What products with sparse blocks must do anywhere: the reference's results, with long rows and none.
#include <algorithm>
#include <doctest/doctest.h>

#include "partita/base/bfloat16.hpp"
#include "reference/kernels.hpp"
#include "support/stage.hpp"

namespace test_support {

using partita::base::bfloat16;

template <class T>
constexpr double law_tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

/// Contiguous, odd strides, strides that keep 16 bytes, and blocks that begin beside them.
inline const std::vector<placing> some_placings{{3, 0}, {0, 0}, {4, 0}, {4, 1}, {4, 2}, {2, 0}};

template <class T, class Device>
void check_spmm(const sparse_block<T>& a, local_index f, placing p) {
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
  for (local_index f = 1; f <= 40; ++f) check_spmm<T, Device>(sparse_block<T>(23, 19), f, {});
  for (const local_index f : {63, 64, 65, 100, 127, 128, 129, 256, 300})
    check_spmm<T, Device>(sparse_block<T>(23, 19), f, {});
}

/// A device may copy rows of x to where they are aligned, if it knows that they are read often.
template <class T, class Device>
void spmm_of_known_entries() {
  for (const local_index f : {1, 2, 3, 5, 6, 7, 8, 41, 47, 130})
    for (const placing p : some_placings) {
      const sparse_block<T> a(60, 9, static_cast<std::size_t>(f % 3));
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
      check_spmm<T, Device>(sparse_block<T>(m, k), f, {});
    check_spmm<T, Device>(sparse_block<T>(3001, 400), f, {});
  }
}

template <class T, class Device>
void spmm_at_any_alignment() {
  for (const local_index f : {1, 2, 4, 6, 8, 16, 36})
    for (const placing p : some_placings)
      for (const std::size_t lead : {0, 1, 2, 3})
        check_spmm<T, Device>(sparse_block<T>(60, 40, lead, lead == 3 ? 1 : lead), f, p);
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
      check_spmm<T, Device>(sparse_block<T>(lengths, 900), f, placing{0, 0});
}

template <class T, class Device>
void check_spmm_transposed(const sparse_block<T>& unsorted, local_index f, placing p) {
  const sparse_block<T> a = unsorted.ascending();
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
    check_spmm_transposed<T, Device>(sparse_block<T>(23, 19), f, {});
  for (const auto& [m, k] :
       std::vector<std::array<local_index, 2>>{{0, 5}, {5, 0}, {0, 0}, {1, 1}, {3, 500}, {3001, 400}})
    for (const local_index f : {1, 18}) check_spmm_transposed<T, Device>(sparse_block<T>(m, k), f, {});
  for (const placing p : some_placings)
    for (const std::size_t lead : {0, 1, 2, 3})
      check_spmm_transposed<T, Device>(sparse_block<T>(60, 40, lead, lead), 16, p);
  std::vector<local_index> one_long(1000, 1);
  one_long[500] = 20000;
  check_spmm_transposed<T, Device>(sparse_block<T>(one_long, 900), 18, placing{0, 0});
}

/// prepare(queue) is called before each product.
template <class T, class Device, class Prepare>
void spmm_with_everything_fused(const Prepare& prepare) {
  const sparse_block<T> a(301, 90);
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

/// x, stored as bfloat16, and the floats that these are.
struct rounded_block {
  explicit rounded_block(const block<float>& x) : stored(x.values.size()), widened(x) {
    std::transform(x.values.begin(), x.values.end(), stored.begin(), [](float v) { return bfloat16(v); });
    widened.values.assign(stored.begin(), stored.end());
  }
  partita::matrix_view<const bfloat16> view() const { return at(stored.data()); }
  /// Of another copy of it.
  partita::matrix_view<const bfloat16> at(const bfloat16* data) const {
    return {data + widened.lead, widened.rows, widened.cols, widened.stride};
  }

  std::vector<bfloat16> stored;
  block<float> widened;
};

/// Products with an x of bfloat16: the reference's, and the bits of the floats that it stores. `known`: a
/// device may copy rows of x, see above. prepare(queue) is called before each product.
template <class Device, class Prepare>
void check_spmm_of_bfloat16(const sparse_block<float>& unsorted, local_index f, placing p, bool known,
                            const Prepare& prepare) {
  const sparse_block<float> a = unsorted.ascending();
  const rounded_block x(block<float>(a.cols, f, 1, p)), up(block<float>(a.rows, f, 3, p));
  const block<float> y(a.rows, f, 2, p), dx(a.cols, f, 2, p);
  const std::vector<float> bias = block<float>(1, f, 5, 0).values;
  const double allowed = law_tolerance<float> * (1 + std::sqrt(double(a.end())) / 100);
  const auto fusion = [&](const float* line) {
    return partita::local::spmm_epilogue<float>{
        1.5F, known ? 0.0F : -0.75F, line, true, {{7, std::uint64_t{1} << 51, 1.25F}, 5, 2}};
  };
  INFO("f ", f, " known ", known);
  const auto same = [](const block<float>& y, auto& at, auto& r, const rounded_block& x, auto multiply) {
    staged_block<float, Device> of_floats(at.queue, y);
    multiply(at(x.widened), of_floats.view());
    multiply(x.at(at(x.stored)), r.view());
    CHECK(same_bits(r.fetch(), of_floats.fetch()));
  };
  agree_with<Device>(
      y, allowed,
      [&](auto& at, auto& r) {
        prepare(at.queue);
        auto of = at(a);
        if (known) of.entries = a.end() - a.offsets.front();
        const float* const line = at(bias);
        same(y, at, r, x, [&](auto from, auto to) { spmm_fused(at.queue, of, from, fusion(line), to); });
      },
      [&](auto& r) {
        reference::spmm_fused(a.view(), std::as_const(x.widened).view(), fusion(bias.data()), r.view());
      });
  agree_with<Device>(
      dx, allowed,
      [&](auto& at, auto& r) {
        const auto of = at(a);
        same(dx, at, r, up,
             [&](auto from, auto to) { spmm_transposed(at.queue, of, from, 1.5F, -0.75F, to); });
      },
      [&](auto& r) {
        reference::spmm_transposed(a.view(), std::as_const(up.widened).view(), 1.5F, -0.75F, r.view());
      });
}

template <class Device, class Prepare>
void spmm_of_bfloat16(const Prepare& prepare) {
  for (const local_index f : {1, 2, 4, 6, 8, 12, 16, 41, 47, 100, 128, 130})
    for (const bool known : {false, true})
      check_spmm_of_bfloat16<Device>(sparse_block<float>(60, 40), f, placing{0, 0}, known, prepare);
  for (const placing p : some_placings)
    for (const std::size_t lead : {0, 1})
      check_spmm_of_bfloat16<Device>(sparse_block<float>(60, 19, lead, 2 * lead), 24, p, true, prepare);
  std::vector<local_index> one_long(1000, 1);
  one_long[500] = 20000;
  check_spmm_of_bfloat16<Device>(sparse_block<float>(one_long, 900), 16, placing{0, 0}, false, prepare);
  check_spmm_of_bfloat16<Device>(sparse_block<float>(0, 5), 8, placing{0, 0}, false, prepare);
}

/// Floats rounded to bfloat16, and back, with strides.
template <class Device>
void roundings_to_bfloat16() {
  for (const local_index f : {1, 7, 16, 33, 130})
    for (const placing p : some_placings) {
      const block<float> x(57, f, 1, p), back(57, f, 2, p);
      const rounded_block rounded(x);
      agree_with<Device>(
          back, 1e-30,
          [&](auto& at, auto& r) {
            bfloat16* const stored = at.template room<bfloat16>(static_cast<std::size_t>(57 * f));
            copy(at.queue, at(x), partita::matrix_view<bfloat16>{stored, 57, f, f});
            copy(at.queue, partita::matrix_view<const bfloat16>{stored, 57, f, f}, r.view());
          },
          [&](auto& r) {
            for (local_index i = 0; i < 57; ++i)
              for (local_index j = 0; j < f; ++j) r.view()(i, j) = rounded.view()(i, j);
          });
    }
}

}  // namespace test_support
