// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Made-up measurements of kernels.

#include <mutex>

#include "partita/comm/threads.hpp"
#include "partita/io/karate.hpp"
#include "partita/memory/kernel_rates.hpp"
#include "partita/train/make_training.hpp"

namespace test_support {

/// Of each kernel that two epochs have: a nanosecond for what it touches, and a microsecond.
template <class T>
void add_kernel_costs(partita::memory::kernel_rates& rates, const partita::policy& p, int ranks,
                      const partita::nn::training_options& options) {
  using namespace partita;
  std::mutex adding;
  threads::run(ranks, [&](const communicator& world) {
    const auto q = memory::observed(device_queue<host>(1),
                                    [&](const memory::kernel_call& c, base::function_reference<void()> run) {
                                      run();
                                      const std::lock_guard lock(adding);
                                      rates.add(c, 1e-9 * c.bytes + 1e-6);
                                    });
    const mesh<host> m(world, default_mesh(p, ranks), q);
    const auto training = nn::make_training<T>(m, io::karate_club(), options, p);
    for (const int epoch : {1, 2}) training->epoch(epoch);
  });
}

}  // namespace test_support
