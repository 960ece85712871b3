// SPDX-License-Identifier: Apache-2.0
// Memory that a queue of the place cuda keeps when buffers release it, on the emulator's devices.
#include "partita/memory/kept_blocks.hpp"

#include <doctest/doctest.h>

#include "emulator/control.hpp"
#include "partita/memory/cuda.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "support/filled_memory.hpp"

namespace test_kept_blocks {

using partita::buffer, partita::cuda_device, partita::device_queue, partita::memory::size_class;
using test_support::download, test_support::fill, test_support::filled;

static_assert(size_class(1) == 512 && size_class(513) == 640 && size_class(1024) == 1024 &&
              size_class(1025) == 1280 && size_class(1793) == 2048);

TEST_CASE("a queue that recycles serves buffers of about as many bytes from those that were released") {
  {  // the first launch brings variables of modules
    const device_queue<cuda_device> q;
    buffer<int, cuda_device> one(q, 1);
    partita::on_cuda::launch(q, 1, fill{one.data(), 0});
    q.synchronize();
  }
  const std::size_t in_use = emulator::bytes_in_use();
  {
    const device_queue<cuda_device> q;
    const buffer<int, cuda_device> before(q, 10);
    q.recycle_memory();
    const auto some = [&](std::size_t more) {
      buffer<int, cuda_device> a(q, 1000 + more), b(q, 130 + more), c(q, 1 + more);
      partita::on_cuda::launch(q, static_cast<int>(a.size()), fill{a.data(), static_cast<int>(more)});
      CHECK(reinterpret_cast<std::uintptr_t>(c.data()) % 256 == 0);
      return download(q, a) == filled(1000 + more, static_cast<int>(more));
    };
    CHECK(some(0));
    const std::size_t kept =
        4096 + 640 + 512;  // 4000, 520 and 4 bytes, in four classes between powers of two
    CHECK(q.meter()->current() == 40 + kept);
    const auto calls = emulator::count();
    for (const std::size_t more : {24U, 7U, 0U, 15U}) CHECK(some(more));
    CHECK((emulator::count() - calls).allocations == 0);
    CHECK(q.meter()->current() == 40 + kept);
    const buffer<int, cuda_device> more(q, 1025);  // takes the place of the largest
    CHECK(q.meter()->current() == 40 + kept - 4096 + 5120);
    q.limit_memory(8192);
    const buffer<int, cuda_device> rest(q, 750);  // of 3072 bytes, for which the others make room
    CHECK(q.meter()->current() == 40 + 5120 + 3000);
  }
  CHECK(emulator::bytes_in_use() == in_use);
}

TEST_CASE("what a queue keeps is given back when another one needs the memory") {
  emulator::set_device_memory(1100 * sizeof(double));  // variables of modules have some of it
  {
    const device_queue<cuda_device> first, second;
    first.recycle_memory();
    { const buffer<double, cuda_device> most(first, 800); }
    CHECK(first.meter()->current() >= 800 * sizeof(double));
    const buffer<double, cuda_device> again(second, 850);
    CHECK(first.meter()->current() == 0);
  }
  emulator::set_device_memory(std::size_t{4} << 30);
}

}  // namespace test_kept_blocks
