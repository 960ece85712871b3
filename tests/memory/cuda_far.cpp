// SPDX-License-Identifier: Apache-2.0
// Far memory of CUDA queues, on the emulator's devices.
#include "partita/memory/cuda_far.hpp"

#include <algorithm>
#include <doctest/doctest.h>

#include "partita/base/function.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/chunked_sums.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "support/ranks.hpp"

namespace test_cuda_far {

using namespace test_support;
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
    local::chunked::zip(q, base::linear_combination<double>{2, 1}, matrix_view<const double>(of_x),
                        matrix_view<const double>(of_x), of_y);
    const memory::far_traffic& t = far_of(q)->traffic();
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
    local::entry_passes<cuda_device> passes;
    local::chunked::spmm_fused(q, passes, 0, a, matrix_view<const double>{at_x.data(), cols, width},
                               {.alpha = 2.0}, matrix_view<double>{y.data(), rows, width});
    local::chunked::spmm_transposed(q, passes, 0, a, matrix_view<const double>{at_z.data(), rows, width}, 1.0,
                                    3.0, matrix_view<double>{s.data(), cols, width});
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

/// What kernels on edges compute, with all operands from this queue: two heads of width 3, 40 rows, one of
/// them long, of 30 columns.
std::vector<std::vector<double>> edge_results(const cuda_queue& q) {
  const local_index rows = 40, cols = 30, heads = 2, width = 6;
  std::vector<local_index> offsets{0}, columns;
  for (local_index i = 0; i < rows; ++i) {
    for (local_index k = 0; k < (i == 3 ? 200 : i % 5 == 4 ? 0 : 1 + i % 6); ++k)
      columns.push_back((7 * i + 11 * k) % cols);
    offsets.push_back(static_cast<local_index>(columns.size()));
  }
  std::vector<local_index> turned_offsets{0}, turned;  // the transpose, in which no entry is twice
  for (local_index c = 0; c < cols; ++c) {
    for (local_index i = 0; i < rows; ++i)
      if (std::find(columns.begin() + offsets[static_cast<std::size_t>(i)],
                    columns.begin() + offsets[static_cast<std::size_t>(i) + 1],
                    c) != columns.begin() + offsets[static_cast<std::size_t>(i) + 1])
        turned.push_back(i);
    turned_offsets.push_back(static_cast<local_index>(turned.size()));
  }
  const auto put = [&]<class V>(const std::vector<V>& from) {
    buffer<V, cuda_device> b(q, from.size());
    copy(q, std::span<const V>(from), b.span());
    return b;
  };
  const auto numbers = [&](std::size_t count, int seed) {
    std::vector<double> v(count);
    for (std::size_t k = 0; k < count; ++k)
      v[k] = static_cast<double>((k * 37 + static_cast<std::size_t>(seed) * 11) % 101) / 101 - 0.5;
    return put(v);
  };
  const auto o = put(offsets), c = put(columns), turned_o = put(turned_offsets), turned_c = put(turned);
  const std::size_t entries = columns.size();
  const local::csr_view<double> transposed{
      cols, rows, turned_o.data(), turned_c.data(), nullptr, static_cast<local_index>(turned.size())};
  const local::csr_view<double> a{rows, cols, o.data(), c.data(), nullptr, static_cast<local_index>(entries)};
  auto values = numbers(2 * entries, 1), d = numbers(2 * entries, 2), x = numbers(180, 3),
       y = numbers(240, 4), z = numbers(180, 5), source = numbers(60, 6), target = numbers(80, 7),
       sums = numbers(80, 8), dots = numbers(80, 9), ds = numbers(60, 10), dt = numbers(80, 11),
       largest = numbers(240, 12), won = put(std::vector<double>(180, 0.0));
  auto arg = put(std::vector<local_index>(240, 0));
  const auto of = [](buffer<double, cuda_device>& b, local_index m, local_index n) {
    return matrix_view<double>{b.data(), m, n};
  };
  const local::head_slice slice{heads, 3, 0};
  local::entry_passes<cuda_device> edges;
  namespace chunked = local::chunked;
  chunked::edge_log_sum(q, edges, 0, a, heads, 0.2, of(source, cols, heads), of(target, rows, heads),
                        of(sums, rows, heads));
  chunked::edge_dot(q, edges, 0, a, slice, of(y, rows, width), of(x, cols, width), 1.0, values.data());
  chunked::edge_multiply(q, edges, 0, a, slice, values.data(), of(x, cols, width), 0.5, of(y, rows, width));
  chunked::edge_multiply_transposed(q, edges, 0, a, slice, values.data(), of(y, rows, width), 1.0,
                                    of(z, cols, width));
  chunked::edge_softmax_gradient(q, edges, 0, a, heads, 0.2, of(source, cols, heads), of(target, rows, heads),
                                 of(sums, rows, heads), of(dots, rows, heads), 1.0, d.data(),
                                 of(ds, cols, heads), of(dt, rows, heads));
  chunked::edge_row_fold(q, edges, 0, a, heads, base::larger_of{}, values.data(), of(dots, rows, heads));
  const matrix_view<local_index> winners{arg.data(), rows, width};
  chunked::max_aggregate(q, edges, 0, a, of(x, cols, width), of(largest, rows, width), winners);
  const bool gathers = chunked::gathers_maxima(q);
  if (gathers)
    chunked::max_gather(q, edges, 1, transposed, 0, matrix_view<const local_index>(winners),
                        of(y, rows, width), of(won, cols, width));
  else
    chunked::max_scatter(q, edges, 0, a, matrix_view<const local_index>(winners), of(y, rows, width),
                         of(won, cols, width));
  std::vector<std::vector<double>> results;
  for (auto* const b : {&values, &y, &z, &sums, &dots, &ds, &dt, &largest, &won}) {
    results.emplace_back(b->size());
    copy(q, std::span<const double>(b->span()), std::span<double>(results.back()));
  }
  std::vector<local_index> found(arg.size());
  copy(q, std::span<const local_index>(arg.span()), std::span<local_index>(found));
  for (local_index& e : found)
    if (!gathers && e >= 0) e = columns[static_cast<std::size_t>(e)];
  results.emplace_back(found.begin(), found.end());
  return results;
}

TEST_CASE("far memory: kernels on edges, chunk by chunk") {
  const auto expected = edge_results(cuda_queue());
  for (const std::size_t window : {8192, 1 << 20}) {
    const cuda_queue q;
    use_far(q, {.store = std::make_shared<pinned_store>(), .window = window, .from = 1});
    const auto found = edge_results(q);
    CHECK(far_of(q)->traffic().chunks >= (window == 8192 ? 24 : 8));
    REQUIRE(found.size() == expected.size());
    for (std::size_t r = 0; r < found.size(); ++r)
      for (std::size_t k = 0; k < found[r].size(); ++k)
        CHECK(found[r][k] == doctest::Approx(expected[r][k]).epsilon(1e-12));
  }
}

}  // namespace test_cuda_far
