// SPDX-License-Identifier: Apache-2.0
// Kernels of far operands equal those of near ones.
#include "partita/local/chunked.hpp"

#include <doctest/doctest.h>

#include "partita/base/random.hpp"
#include "partita/local/chunked_gemm.hpp"
#include "partita/local/chunked_sums.hpp"
#include "partita/local/row_products.hpp"
#include "partita/memory/mapped_store.hpp"
#include "support/far_store.hpp"

namespace test_chunked {

using namespace partita;
namespace chunked = partita::local::chunked;
using host_queue = device_queue<host>;

template <class T>
struct matrix {
  matrix(const host_queue& q, local_index rows, local_index cols, std::uint64_t seed = 0)
      : values(q, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)),
        view{values.data(), rows, cols, cols} {
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j)
        view(i, j) = static_cast<T>(static_cast<double>(base::random_bits(seed, i, j) >> 40) * 0x1p-23 - 1);
  }
  matrix_view<const T> read() const { return view; }

  buffer<T, host> values;
  matrix_view<T> view;
};

template <class T>
double difference(const matrix<T>& a, const matrix<T>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a.values.data()[i]) - b.values.data()[i]));
  return most;
}

constexpr local_index rows = 211, deep = 7, wide = 5;

/// A near queue and far ones whose windows force different numbers of chunks.
void for_windows(const std::function<void(const host_queue&, bool)>& check) {
  const auto store = test_support::new_far_store();
  for (const std::size_t window : {1 << 20, 7 << 10, 6 << 10}) {
    const host_queue far;
    use_far(far, {.store = store, .window = window, .from = 800});
    check(far, window == 1 << 20);
    CHECK(far_of(far)->traffic().chunks > 0);
  }
}

struct product_of_indices {
  template <class T>
  constexpr T operator()(local_index i, local_index j, T x) const {
    return x * T(i) + T(j);
  }
};

TEST_CASE_TEMPLATE("chunked kernels: those of one row each have the bits of the kernels", T, float, double) {
  const host_queue near;
  const matrix<T> x(near, rows, deep, 1), w(near, deep, wide, 2), g(near, rows, wide, 3),
      bias(near, 1, wide, 4);
  for_windows([&](const host_queue& q, bool) {
    const matrix<T> far_x(q, rows, deep, 1), far_g(q, rows, wide, 3);
    const auto same = [&](local_index cols, const auto& run) {
      matrix<T> expected(near, rows, cols, 5), found(q, rows, cols, 5);
      run(near, x, g, expected);
      run(q, far_x, far_g, found);
      CHECK(difference(expected, found) == 0);
    };
    same(deep,
         [](const host_queue& at, const auto&, const auto&, auto& y) { chunked::fill(at, T(3), y.view); });
    same(deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::copy(at, a.read(), y.view);
    });
    same(deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::transform(at, base::positive_part{}, a.read(), y.view);
    });
    same(deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::transform_indexed(at, product_of_indices{}, a.read(), y.view);
    });
    same(deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::zip(at, base::linear_combination<T>{2, 3}, a.read(), y.read(), y.view);
    });
    same(deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      const auto row = []<class V>(matrix_view<V> v) {
        return matrix_view<V>{v.data, 1, rows * deep, rows * deep};
      };
      chunked::zip(at, base::linear_combination<T>{2, 3}, row(a.read()), row(y.read()), row(y.view));
    });
    same(wide, [&](const host_queue& at, const auto&, const auto&, auto& y) {
      chunked::add_row(at, bias.view.data, y.view);
    });
    for (const T beta : {T(0), T(2)}) {
      same(wide, [&](const host_queue& at, const auto& a, const auto&, auto& y) {
        chunked::gemm(at, false, false, T(2), a.read(), w.read(), beta, y.view);
      });
      same(deep, [&](const host_queue& at, const auto&, const auto& b, auto& y) {
        chunked::gemm(at, false, true, T(2), b.read(), w.read(), beta, y.view);
      });
      same(wide, [&](const host_queue& at, const auto& a, const auto&, auto& y) {
        local::row_product(at, a.read(), w.read(), {.beta = beta, .bias = bias.view.data, .relu = true},
                           y.view);
      });
    }
    same(deep, [&](const host_queue& at, const auto& a, const auto& b, auto& y) {
      chunked::gemm_relu_backward(at, b.read(), w.read(), a.read(), y.view);
    });
    matrix<T> expected(near, 1, rows), found(near, 1, rows);
    chunked::row_sums(near, x.read(), expected.view.data);
    chunked::row_sums(q, far_x.read(), found.view.data);
    CHECK(difference(expected, found) == 0);
  });
}

TEST_CASE_TEMPLATE("chunked kernels: sums over rows are sums of the chunks' sums", T, float, double) {
  const host_queue near;
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-12;
  const matrix<T> x(near, rows, deep, 1), g(near, rows, wide, 3);
  std::vector<local_index> labels(rows);
  for (local_index i = 0; i < rows; ++i) labels[static_cast<std::size_t>(i)] = i % 11 == 0 ? -1 : i % wide;
  for_windows([&](const host_queue& q, bool one_chunk) {
    const matrix<T> far_x(q, rows, deep, 1), far_g(q, rows, wide, 3);
    const auto close = [&](local_index height, local_index cols, const auto& run) {
      matrix<T> expected(near, height, cols, 5), found(near, height, cols, 5);
      run(near, x, g, expected);
      run(q, far_x, far_g, found);
      CHECK(difference(expected, found) <= (one_chunk ? 0 : tolerance));
    };
    for (const T beta : {T(0), T(2)})
      close(deep, wide, [&](const host_queue& at, const auto& a, const auto& b, auto& y) {
        chunked::gemm(at, true, false, T(2), a.read(), b.read(), beta, y.view);
      });
    close(1, wide, [&](const host_queue& at, const auto& a, const auto& b, auto& y) {
      matrix<T> dw(near, deep, wide);
      chunked::gemm_bias_gradient(at, a.read(), b.read(), dw.view, y.view.data);
      matrix<T> expected(near, deep, wide);
      gemm(near, true, false, T(1), x.read(), g.read(), T(0), expected.view);
      CHECK(difference(expected, dw) <= tolerance);
    });
    close(1, deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::column_sums(at, a.read(), y.view.data);
    });
    close(1, deep, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      chunked::column_dots(at, a.read(), a.read(), y.view.data);
    });
    close(1, 1, [](const host_queue& at, const auto& a, const auto&, auto& y) {
      y.view(0, 0) = chunked::sum(at, a.read()) + chunked::dot(at, a.read(), a.read());
    });
    close(1, 2, [&](const host_queue& at, const auto&, const auto& b, auto& y) {
      matrix<T> gradient(at, rows, wide), expected(near, rows, wide);
      y.view(0, 0) =
          static_cast<T>(chunked::cross_entropy(at, b.read(), labels.data(), T(0.25), gradient.view));
      y.view(0, 1) = static_cast<T>(
          chunked::count_correct(at, b.read(), std::array<const local_index*, 1>{labels.data()})[0]);
      cross_entropy(near, g.read(), labels.data(), T(0.25), expected.view);
      CHECK(difference(expected, gradient) == 0);
    });
  });
}

}  // namespace test_chunked
