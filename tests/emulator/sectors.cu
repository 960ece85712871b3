// SPDX-License-Identifier: Apache-2.0
// What the emulator counts of memory that kernels touch.
#include <array>
#include <doctest/doctest.h>
#include <string_view>
#include <vector>

#include "emulator/control.hpp"
#include "partita/local/cuda/edge_products.hpp"
#include "partita/local/cuda/edges.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace test_emulator_sectors {

using partita::buffer, partita::cuda_device, partita::device_queue, partita::on_cuda::launch;

/// data[t] = t.
struct count_up {
  int* data;
  constexpr void operator()(std::int64_t t) const { data[t] = static_cast<int>(t); }
};
/// to[t] = from[t] + 1.
struct increment {
  const int* from;
  int* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[t] + 1; }
};
/// to[t] = from[8 t], in packs of four.
struct gather_packs {
  struct alignas(16) pack {
    int at[4];
  };
  const pack* from;
  pack* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[2 * t]; }
};

/// Of the only kernel that `act` launches whose name contains `part`.
template <class Act>
emulator::kernel_cost cost_of(const device_queue<cuda_device>& q, Act act, std::string_view part = "") {
  q.synchronize();
  const auto before = emulator::kernel_costs();
  emulator::look_at_sectors(true);
  act();
  q.synchronize();
  emulator::look_at_sectors(false);
  for (auto [name, cost] : emulator::kernel_costs()) {
    if (name.find(part) == std::string::npos) continue;
    const auto earlier = before.find(name);
    if (earlier == before.end()) return cost;
    if (earlier->second.launches == cost.launches) continue;
    cost -= earlier->second;
    return cost;
  }
  return {};
}

TEST_CASE("sectors of 32 bytes are counted for every warp, and once for a launch") {
  const device_queue<cuda_device> q;
  buffer<int, cuda_device> a(q, 512), b(q, 512);
  launch(q, 512, count_up{a.data()});
  const auto streams = cost_of(q, [&] { launch(q, 64, increment{a.data(), b.data()}); });
  CHECK(streams.load_sectors == 64 * 4 / 32);
  CHECK(streams.store_sectors == 64 * 4 / 32);
  CHECK(streams.distinct_sectors == 2 * 64 * 4 / 32);
  CHECK(streams.loads == 2);
  CHECK(streams.wide_loads == 0);
  // Behind a sector's beginning a warp touches one more; two warps share it.
  const auto skewed = cost_of(q, [&] { launch(q, 64, increment{a.data() + 1, b.data()}); });
  CHECK(skewed.load_sectors == 2 * 5);
  CHECK(skewed.distinct_sectors == 9 + 8);
  using pack = gather_packs::pack;
  const auto gathers = cost_of(q, [&] {
    launch(q, 32, gather_packs{reinterpret_cast<const pack*>(a.data()), reinterpret_cast<pack*>(b.data())});
  });
  CHECK(gathers.load_sectors == 32);
  CHECK(gathers.store_sectors == 16);
  CHECK(gathers.loads == 1);
  CHECK(gathers.wide_loads == 1);
  const auto quiet = emulator::kernel_costs();
  launch(q, 64, increment{a.data(), b.data()});
  q.synchronize();
  for (const auto& [name, cost] : emulator::kernel_costs())
    CHECK(cost.load_sectors == quiet.at(name).load_sectors);
}

template <class T>
buffer<T, cuda_device> on_card(const device_queue<cuda_device>& q, const std::vector<T>& from) {
  buffer<T, cuda_device> to(q, from.size());
  partita::copy(q, std::span<const T>(from), to.span());
  return to;
}

/// Dot products of heads of `width` columns for a pattern with 14 entries a row, in whole numbers.
struct dots_of_rows {
  using index = partita::local_index;
  static constexpr index vertices = 128, sources = 32, degree = 14;

  index heads, width;

  static int number(index i, index j) { return (3 * i + 5 * j) % 7 - 3; }
  static index neighbour(index row, index k) { return (5 * row + 3 * k) % sources; }

  /// Bytes in sectors, for an entry: of the dot products, which are right, and of copies of x and y.
  std::array<std::int64_t, 2> bytes_of_entry() const {
    const device_queue<cuda_device> q;
    const index f = heads * width, entries = vertices * degree;
    std::vector<index> offsets, columns;
    std::vector<float> numbers, expected;
    for (index v = 0; v <= vertices; ++v) offsets.push_back(v * degree);
    for (index v = 0; v < vertices; ++v)
      for (index j = 0; j < f; ++j) numbers.push_back(static_cast<float>(number(v, j)));
    for (index v = 0; v < vertices; ++v)
      for (index k = 0; k < degree; ++k) {
        columns.push_back(neighbour(v, k));
        for (index h = 0; h < heads; ++h) {
          int dot = 0;
          for (index j = h * width; j < (h + 1) * width; ++j) dot += number(v, j) * number(columns.back(), j);
          expected.push_back(static_cast<float>(dot));
        }
      }
    const auto x = on_card(q, numbers);
    const auto starts = on_card(q, offsets), neighbours = on_card(q, columns);
    const partita::local::csr_view<float> a{vertices,          sources, starts.data(),
                                            neighbours.data(), nullptr, entries};
    const partita::matrix_view<const float> rows{x.data(), vertices, f, f}, gathered{x.data(), sources, f, f};
    buffer<float, cuda_device> dots(q, expected.size());
    const auto cost = [&](const char* kernel) {
      const auto of_kernel = cost_of(
          q,
          [&] {
            partita::on_cuda::edge_dot(q, a, {heads, width, 0}, rows, gathered, 0.0F, dots.data());
          },
          kernel);
      CHECK(of_kernel.launches <= 2);
      return 32 * static_cast<std::int64_t>(of_kernel.load_sectors + of_kernel.store_sectors) / entries;
    };
    const std::array bytes{cost("warp_dots"), cost("pad_row")};
    std::vector<float> found(expected.size());
    partita::copy(q, std::span<const float>(dots.span()), std::span(found));
    q.synchronize();
    CHECK(found == expected);
    return bytes;
  }
};

TEST_CASE("dot products of edges read the row of an entry once") {
  const auto check = [](dots_of_rows of, std::int64_t dots, std::int64_t copies) {
    const auto [bytes, of_copies] = of.bytes_of_entry();
    CHECK(bytes == dots);
    CHECK(of_copies == copies);
  };
  check({8, 8}, 318, 0);  // a thread for an entry: 856
  check({1, 48}, 223, 0);
  check({1, 47}, 223, 38);    // rows begin anywhere; a thread for an entry: 1681
  check({1, 7}, 77, 0);       // too narrow for a copy
  check({1, 132}, 634, 0);    // by more lanes
  check({1, 1028}, 6568, 0);  // more than lanes keep of y's row
}

TEST_CASE("softmax values of 8 heads are stored by 16 bytes") {
  using index = partita::local_index;
  constexpr index vertices = 128, degree = 14, heads = 8, entries = vertices * degree;
  const device_queue<cuda_device> q;
  std::vector<index> offsets, columns;
  for (index v = 0; v <= vertices; ++v) offsets.push_back(v * degree);
  for (index e = 0; e < entries; ++e) columns.push_back(dots_of_rows::neighbour(e / degree, e % degree));
  const auto starts = on_card(q, offsets), neighbours = on_card(q, columns);
  const auto zeros = on_card(q, std::vector<float>(vertices * heads));
  const partita::local::csr_view<float> a{vertices,          vertices, starts.data(),
                                          neighbours.data(), nullptr,  entries};
  const partita::matrix_view<const float> all{zeros.data(), vertices, heads, heads};
  buffer<float, cuda_device> values(q, entries * heads);
  const auto cost = cost_of(
      q, [&] { partita::on_cuda::edge_softmax<float>(q, a, heads, 0.2F, all, all, all, values.data()); },
      "store_softmax");
  CHECK(32 * cost.store_sectors == entries * heads * sizeof(float));
  CHECK(32 * cost.load_sectors / entries == 48);
  CHECK(cost.warp_instructions / entries <= 8);  // by single heads 17
  std::vector<float> found(entries * heads);
  partita::copy(q, std::span<const float>(values.span()), std::span(found));
  CHECK(found == std::vector<float>(entries * heads, 1));  // exp(0 - 0)
}

/// A product of 128 columns with rows of 14 entries, in whole numbers, of an x stored as X.
template <class X>
emulator::kernel_cost cost_of_product() {
  using index = partita::local_index;
  constexpr index rows = 128, sources = 32, degree = 14, f = 128, entries = rows * degree;
  const device_queue<cuda_device> q;
  std::vector<index> offsets, columns;
  std::vector<float> values, expected(std::size_t{rows} * f);
  std::vector<X> numbers;
  for (index i = 0; i < sources; ++i)
    for (index j = 0; j < f; ++j) numbers.push_back(X(static_cast<float>(dots_of_rows::number(i, j))));
  for (index v = 0; v <= rows; ++v) offsets.push_back(v * degree);
  for (index v = 0; v < rows; ++v)
    for (index k = 0; k < degree; ++k) {
      columns.push_back((29 * v + 17 * k) % sources);
      values.push_back(static_cast<float>(v % 3 + k));
      for (index j = 0; j < f; ++j)
        expected[static_cast<std::size_t>(v * f + j)] +=
            values.back() * static_cast<float>(dots_of_rows::number(columns.back(), j));
    }
  const auto starts = on_card(q, offsets), neighbours = on_card(q, columns);
  const auto weights = on_card(q, values);
  const auto x = on_card(q, numbers);
  const partita::local::csr_view<float> a{rows,           sources, starts.data(), neighbours.data(),
                                          weights.data(), entries};
  buffer<float, cuda_device> y(q, expected.size());
  const auto cost = cost_of(
      q,
      [&] {
        partita::on_cuda::spmm_fused(q, a, partita::matrix_view<const X>{x.data(), sources, f, f}, {},
                                     partita::matrix_view<float>{y.data(), rows, f, f});
      },
      "fold_shares");
  std::vector<float> found(expected.size());
  partita::copy(q, std::span<const float>(y.span()), std::span(found));
  q.synchronize();
  CHECK(found == expected);
  CHECK(cost.launches == 1);
  return cost;
}

TEST_CASE("a product gathers half of the bytes where x is stored as bfloat16, by 16 bytes a lane") {
  constexpr std::uint64_t entries = 128 * 14;
  const auto half = cost_of_product<partita::base::bfloat16>(), whole = cost_of_product<float>();
  CHECK(32 * half.load_sectors <= 288 * entries);  // 256 are rows of x, 16 values and columns
  CHECK(32 * whole.load_sectors <= 550 * entries);
  CHECK(half.warp_instructions <= 38 * entries);
  CHECK(whole.warp_instructions <=
        31 * entries);  // 34 where columns ahead were loaded before they were needed
  // Two shares are in a warp, which fours of entries begin at other places of.
  CHECK(2 * half.wide_loads <= whole.wide_loads + entries / 8);
}

}  // namespace test_emulator_sectors
