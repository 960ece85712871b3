// SPDX-License-Identifier: Apache-2.0
// Rows in 16, 8 and 4 bits: sizes, bounds of errors, and rounding that has the number as its mean.
#include "partita/local/row_encoding.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "partita/local/host/move.hpp"
#include "partita/memory/host.hpp"

namespace test_row_encoding {

using namespace partita;
using local::row_encoding;

/// What is decoded of rows behind each other.
template <class T>
std::vector<T> decoded(row_encoding how, const std::vector<T>& rows, local_index width, std::uint64_t noise,
                       const std::vector<local_index>& numbers = {}) {
  const device_queue<host> q;
  const std::size_t count = rows.size() / static_cast<std::size_t>(width);
  std::vector<std::uint8_t> code(count * static_cast<std::size_t>(local::sent_of_row(how, width)));
  encode_rows(q, count,
              local::encoded_row<T>{how, rows.data(), width, numbers.empty() ? nullptr : numbers.data(), 0, 0,
                                    noise, code.data()});
  std::vector<T> found(rows.size());
  decode_rows(q, count, local::decoded_row<T>{how, code.data(), width, found.data()});
  return found;
}

std::vector<double> some_rows(std::size_t size) {
  std::vector<double> rows;
  for (std::size_t k = 0; k < size; ++k)
    rows.push_back(std::ldexp(std::sin(static_cast<double>(k * k)), static_cast<int>(k % 7) - 3));
  return rows;
}

TEST_CASE("encoded rows: bytes, of floats of 4") {
  CHECK(local::sent_of_row(row_encoding::exact, 65) == 65);
  CHECK(local::sent_of_row(row_encoding::bf16, 65) == 130);
  CHECK(local::sent_of_row(row_encoding::int8, 65) == 69);
  CHECK(local::sent_of_row(row_encoding::int4, 65) == 37);
  for (const global_index n : {64, 128, 602}) CHECK(7 * local::sent_of_row(row_encoding::int4, n) <= 4 * n);
}

TEST_CASE("encoded rows: how far a number is from what is decoded") {
  for (const local_index width : {1, 2, 7, 64}) {
    const std::vector<double> rows = some_rows(5 * static_cast<std::size_t>(width));
    for (const row_encoding how : {row_encoding::bf16, row_encoding::int8, row_encoding::int4}) {
      const std::vector<double> found = decoded(how, rows, width, 3);
      const int levels = (1 << local::bits_of(how)) - 1;
      for (std::size_t i = 0; i < 5; ++i) {
        const auto row =
            std::span(rows).subspan(i * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
        const double least = *std::ranges::min_element(row), most = *std::ranges::max_element(row);
        // The bound of a step, of which bfloat16 adds 2^-7 to its ends and to itself.
        const double step = (most - least + 0x1p-7 * std::abs(least)) / levels * (1 + 0x1p-7);
        for (std::size_t j = 0; j < row.size(); ++j) {
          const double off = std::abs(found[i * row.size() + j] - row[j]);
          CHECK(off <= (how == row_encoding::bf16 ? 0x1p-8 * std::abs(row[j]) : step * (1 + 1e-5)));
        }
      }
    }
  }
}

TEST_CASE("encoded rows: the mean over rounding is the number, and zeros of nonnegative rows stay") {
  const std::vector<float> row{0, 0.37F, 1, 0.811F, 0, 0.05F};
  for (const row_encoding how : {row_encoding::int8, row_encoding::int4}) {
    std::vector<double> mean(row.size(), 0);
    constexpr int draws = 4000;
    for (std::uint64_t noise = 0; noise < draws; ++noise) {
      const std::vector<float> found = decoded(how, row, 6, random_key{noise, 1, 2}.word());
      for (std::size_t j = 0; j < row.size(); ++j) mean[j] += static_cast<double>(found[j]) / draws;
      CHECK(found[0] == 0);
    }
    // Of a step at most 1/2 is the deviation of a draw; four deviations of the mean.
    const double step = 1.01 / ((1 << local::bits_of(how)) - 1);
    for (std::size_t j = 0; j < row.size(); ++j)
      CHECK(std::abs(mean[j] - row[j]) < 4 * step / 2 / std::sqrt(draws));
  }
}

TEST_CASE("encoded rows: the bits of a row follow from its number, not from its place") {
  const std::vector<double> rows = some_rows(21);
  const std::vector<double> all = decoded(row_encoding::int8, rows, 7, 5, {10, 20, 30});
  const std::vector<double> last(rows.begin() + 14, rows.end());
  CHECK(decoded(row_encoding::int8, last, 7, 5, {30}) == std::vector<double>(all.begin() + 14, all.end()));
  CHECK(decoded(row_encoding::int8, last, 7, 5, {31}) != std::vector<double>(all.begin() + 14, all.end()));
}

TEST_CASE("encoded rows: numbers that are not finite, and rows of one number") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const row_encoding how : {row_encoding::int8, row_encoding::int4}) {
    for (const std::vector<float>& row :
         {std::vector{1.0F, nan, 0.0F}, {inf, 1.0F, 1.0F}, {1.0F, -inf, 2.0F}})
      for (const float x : decoded(how, row, 3, 1)) CHECK(std::isnan(x));
    CHECK(decoded(how, std::vector{0.0F, 0.0F}, 2, 1) == std::vector{0.0F, 0.0F});
    CHECK(decoded(how, std::vector{-0.75F, -0.75F}, 2, 1) == std::vector{-0.75F, -0.75F});
  }
  CHECK(std::isnan(decoded(row_encoding::bf16, std::vector{nan}, 1, 1)[0]));
}

}  // namespace test_row_encoding
