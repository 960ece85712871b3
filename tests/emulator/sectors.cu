// SPDX-License-Identifier: Apache-2.0
// What the emulator counts of memory that kernels touch.
#include <doctest/doctest.h>

#include "emulator/control.hpp"
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

/// Of the only kernel that `act` launches.
template <class Act>
emulator::kernel_cost cost_of(const device_queue<cuda_device>& q, Act act) {
  q.synchronize();
  const auto before = emulator::kernel_costs();
  emulator::look_at_sectors(true);
  act();
  q.synchronize();
  emulator::look_at_sectors(false);
  for (auto [name, cost] : emulator::kernel_costs()) {
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

}  // namespace test_emulator_sectors
