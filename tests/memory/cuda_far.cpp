// SPDX-License-Identifier: Apache-2.0
// Far memory of CUDA queues, on the emulator's devices.
#include "partita/memory/cuda_far.hpp"

#include <cstddef>
#include <doctest/doctest.h>
#include <memory>
#include <span>
#include <vector>

#include "partita/base/function.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/local/far_spmm.hpp"
#include "support/ranks.hpp"

namespace test_cuda_far {

using namespace partita;
using test_support::expect_error;
using cuda_queue = device_queue<cuda_device>;

TEST_CASE("pinned store: finds the blocks of its addresses") {
  pinned_store store;
  auto* const a = static_cast<std::byte*>(store.allocate(100));
  auto* const b = static_cast<std::byte*>(store.allocate(100));
  for (const std::byte* at : {a, a + 99, b, b + 99}) CHECK(store.contains(at));
  CHECK(!store.contains(&store));
  CHECK(!store.contains(nullptr));
  store.release(a, 100);
  CHECK(!store.contains(a + 50));
  CHECK(store.contains(b));
}

TEST_CASE("far memory: what is large or does not fit lives in pinned memory, the window on the device") {
  const cuda_queue q;
  q.limit_memory(2000);
  const auto store = std::make_shared<pinned_store>();
  use_far(q, {.store = store, .window = 1024, .from = 700});
  CHECK(q.meter()->current() == 1024);
  const buffer<std::byte, cuda_device> small(q, 699), large(q, 700), beyond(q, 600);
  CHECK(!store->contains(small.data()));
  CHECK(store->contains(large.data()));
  CHECK(store->contains(beyond.data()));
  CHECK(q.meter()->current() == 1024 + 699);
  const cuda_queue other;
  other.limit_memory(1000);
  expect_error<budget_error>("a buffer of 1024 bytes does not fit", [&] { use_far(other, {store, 1024}); });
}

TEST_CASE("far memory: kernels of far operands run chunk by chunk, and count what travels") {
  const local_index rows = 103, cols = 5;
  const std::size_t size = std::size_t{103} * 5;
  for (const std::size_t window : {2048, 8192, 1 << 20}) {
    const cuda_queue q;
    const auto store = std::make_shared<pinned_store>();
    use_far(q, {.store = store, .window = window, .from = 1000});
    buffer<double, cuda_device> x(q, size), y(q, size), sums(q, 5);
    REQUIRE(store->contains(x.data()));
    REQUIRE(!store->contains(sums.data()));
    std::vector<double> values(size), found(size), of_columns(5);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(i % 17);
    copy(q, std::span<const double>(values), x.span());
    const matrix_view<double> of_x{x.data(), rows, cols}, of_y{y.data(), rows, cols};
    local::chunked::zip(q, linear_combination<double>{2, 1}, matrix_view<const double>(of_x),
                        matrix_view<const double>(of_x), of_y);
    const far_traffic& t = far_of(q)->traffic();
    CHECK(t.read == 2 * size * sizeof(double));
    CHECK(t.written == size * sizeof(double));
    CHECK(t.chunks >= (window == 2048 ? 10 : 1));
    local::chunked::column_sums(q, matrix_view<const double>(of_y), sums.data());
    copy(q, std::span<const double>(y.span()), std::span<double>(found));
    copy(q, std::span<const double>(sums.span()), std::span<double>(of_columns));
    std::vector<double> expected(5);
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(found[i] == 3 * values[i]);
      expected[i % 5] += 3 * values[i];
    }
    CHECK(of_columns == expected);
  }
}

TEST_CASE("far memory: products of far blocks, and of their transposes, chunk by chunk") {
  const local_index rows = 90, cols = 70, width = 3;
  std::vector<local_index> offsets{0}, columns;
  std::vector<double> values, x, z;
  for (local_index i = 0; i < rows; ++i) {
    for (local_index j = i % 7; j < cols && i % 11 != 4; j += i % 13 == 0 ? 1 : 9) {
      columns.push_back(j);
      values.push_back(i + 0.5 * j);
    }
    offsets.push_back(static_cast<local_index>(columns.size()));
  }
  for (local_index k = 0; k < cols * width; ++k) x.push_back(k % 19 - 7);
  for (local_index k = 0; k < rows * width; ++k) z.push_back(k % 23 - 11);
  std::vector<double> product(z.size(), 0), transposed(x.size(), 0);
  for (local_index i = 0; i < rows; ++i)
    for (auto e = offsets[static_cast<std::size_t>(i)]; e < offsets[static_cast<std::size_t>(i) + 1]; ++e)
      for (local_index k = 0; k < width; ++k) {
        const local_index j = columns[static_cast<std::size_t>(e)];
        const auto of_x = static_cast<std::size_t>(j * width + k),
                   of_z = static_cast<std::size_t>(i * width + k);
        product[of_z] += values[static_cast<std::size_t>(e)] * x[of_x];
        transposed[of_x] += values[static_cast<std::size_t>(e)] * z[of_z];
      }
  for (const std::size_t window : {8192, 1 << 20}) {
    const cuda_queue q;
    use_far(q, {.store = std::make_shared<pinned_store>(), .window = window, .from = 1});
    const auto far = [&]<class V>(const std::vector<V>& from) {
      buffer<V, cuda_device> b(q, from.size());
      copy(q, std::span<const V>(from), b.span());
      return b;
    };
    const auto o = far(offsets), c = far(columns);
    const auto v = far(values);
    auto at_x = far(x), at_z = far(z);
    auto y = far(std::vector<double>(z.size(), 1)), s = far(std::vector<double>(x.size(), 1));
    const local::csr_view<double> a{rows,     cols,     o.data(),
                                    c.data(), v.data(), static_cast<local_index>(columns.size())};
    local::far_products<double, cuda_device> products;
    REQUIRE(products.multiply(q, 0, a, matrix_view<const double>{at_x.data(), cols, width}, {.alpha = 2.0},
                              matrix_view<double>{y.data(), rows, width}));
    REQUIRE(products.multiply_transposed(q, 0, a, matrix_view<const double>{at_z.data(), rows, width}, 1.0,
                                         3.0, matrix_view<double>{s.data(), cols, width}));
    std::vector<double> found(z.size()), back(x.size());
    copy(q, std::span<const double>(y.span()), std::span<double>(found));
    copy(q, std::span<const double>(s.span()), std::span<double>(back));
    for (std::size_t k = 0; k < found.size(); ++k)
      CHECK(found[k] == doctest::Approx(2 * product[k]).epsilon(1e-13));
    for (std::size_t k = 0; k < back.size(); ++k)
      CHECK(back[k] == doctest::Approx(3 + transposed[k]).epsilon(1e-13));
    CHECK(far_of(q)->traffic().chunks >= (window == 8192 ? 6 : 2));
  }
}

}  // namespace test_cuda_far
