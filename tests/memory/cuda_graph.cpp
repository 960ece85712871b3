// SPDX-License-Identifier: Apache-2.0
// Work that is captured and done again, on the emulator's devices.
#include "partita/memory/cuda_graph.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <utility>

#include "emulator/control.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "support/filled_memory.hpp"
#include "support/ranks.hpp"

namespace test_cuda_graph {

using partita::buffer, partita::cuda_device, partita::device_queue;
using test_support::download, test_support::expect_error, test_support::fill, test_support::filled;

/// What fill writes, by a number of a step.
struct fill_by_number {
  int* data;
  partita::base::step_number<int> first;
  constexpr void operator()(std::int64_t thread) const { fill{data, first}(thread); }
};

/// Work of a step that may be captured.
struct numbered_work {
  device_queue<cuda_device> q;
  buffer<int, cuda_device> a{q, 10};
  int calls = 0, remembered = 0;
  partita::memory::captured<cuda_device> repeated = {};

  /// How often the work was called, and graphs were launched.
  std::pair<int, std::uint64_t> step(std::uint64_t number) {
    const std::uint64_t before = emulator::calls("cudaGraphLaunch");
    repeated(q, number, [&](partita::memory::step_numbers* numbers) {
      ++calls;
      fill_by_number body{a.data(), static_cast<int>(number)};
      if (numbers != nullptr) {
        body.first = numbers->number<int>([](std::uint64_t n) { return static_cast<int>(n); });
        numbers->before_each([&] { ++remembered; });
      }
      partita::on_cuda::launch(q, 10, body);
    });
    CHECK(download(q, a) == filled(10, static_cast<int>(number)));
    return {calls, emulator::calls("cudaGraphLaunch") - before};
  }
};

TEST_CASE("work is captured when a call allocated nothing, and done again with numbers of each step") {
  using count = std::pair<int, std::uint64_t>;
  numbered_work work;
  CHECK(work.step(4) == count{1, 0});
  CHECK(work.step(5) == count{2, 1});
  CHECK(work.remembered == 0);
  CHECK(work.step(7) == count{2, 1});
  CHECK(work.step(3) == count{2, 1});
  CHECK(work.remembered == 2);
  {
    const buffer<int, cuda_device> other(work.q, 1);
    CHECK(work.step(8) == count{3, 0});  // the work's own may have moved
    CHECK(work.step(9) == count{4, 1});
  }
  CHECK(work.step(10) == count{5, 0});
  CHECK(work.step(11) == count{6, 1});
  numbered_work moved(std::move(work));
  CHECK(moved.step(12) == count{7, 0});
  CHECK(moved.step(13) == count{8, 1});
  {
    numbered_work recycling;
    recycling.q.recycle_memory();  // whose buffers may move without an allocation
    for (int n = 1; n < 4; ++n) CHECK(recycling.step(static_cast<std::uint64_t>(n)) == count{n, 0});
  }
  moved.q.extend(std::make_shared<partita::on_cuda::without_graphs>());
  CHECK(moved.step(14) == count{9, 0});
  CHECK(moved.step(15) == count{10, 0});
}

TEST_CASE("captured work that waits, or throws, is an error, and leaves the queue as it was") {
  numbered_work work;
  const auto waiting = [&](partita::memory::step_numbers*) { work.q.synchronize(); };
  partita::memory::captured<cuda_device> repeated;
  repeated(work.q, 1, waiting);
  expect_error<partita::device_error>("the host waits for stream", [&] { repeated(work.q, 2, waiting); });
  repeated(work.q, 3, waiting);
  const auto throwing = [](partita::memory::step_numbers* numbers) {
    if (numbers != nullptr)
      for (std::size_t k = 0; k <= partita::memory::step_numbers::most; ++k)
        numbers->number<int>([](std::uint64_t) { return 0; });
  };
  partita::memory::captured<cuda_device> other;
  other(work.q, 1, throwing);
  expect_error<partita::error>("a step that is recorded has at most 1024 numbers of its own",
                               [&] { other(work.q, 2, throwing); });
  CHECK(work.step(4).second == 0);
  CHECK(work.step(5).second == 1);
}

}  // namespace test_cuda_graph
