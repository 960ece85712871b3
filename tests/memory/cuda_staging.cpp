// SPDX-License-Identifier: Apache-2.0
// Uploads through page-locked memory, on the emulator's devices.
#include "partita/memory/cuda_staging.hpp"

#include <doctest/doctest.h>
#include <numeric>

#include "emulator/control.hpp"
#include "partita/memory/cuda.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace test_cuda_staging {

using partita::buffer, partita::cuda_device, partita::device_queue;

/// to[t] = from[t] + 1.
struct increment {
  const int* from;
  int* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[t] + 1; }
};

std::vector<int> download(const device_queue<cuda_device>& q, const buffer<int, cuda_device>& b) {
  std::vector<int> v(b.size());
  partita::copy(q, b.span(), std::span<int>(v));
  return v;
}

TEST_CASE("uploads take what is there now, in the order of the queue, and wait only for room") {
  constexpr std::size_t half = partita::on_cuda::staging_ring::half_bytes / sizeof(int);
  const device_queue<cuda_device> q;
  const auto waits = [] { return emulator::count().stream_synchronisations; };
  std::vector<int> values(100);
  buffer<int, cuda_device> a(q, values.size()), b(q, values.size());
  partita::copy(q, std::span<const int>(values), a.span());  // makes the ring
  auto before = waits();
  for (int round = 1; round <= 50; ++round) {
    values.assign(values.size(), round);
    partita::copy(q, std::span<const int>(values), a.span());
    partita::on_cuda::launch(q, 100, increment{a.data(), b.data()});
  }
  CHECK(waits() == before);
  CHECK(download(q, b) == std::vector<int>(100, 51));
  CHECK(waits() == before + 1);

  std::vector<int> many(3 * half + 7);
  std::iota(many.begin(), many.end(), 0);
  const std::vector<int> expected = many;
  buffer<int, cuda_device> large(q, many.size());
  before = waits();
  partita::copy(q, std::span<const int>(many), large.span());
  CHECK(waits() > before);
  many.assign(many.size(), -1);
  CHECK(download(q, large) == expected);
}

}  // namespace test_cuda_staging
