// SPDX-License-Identifier: Apache-2.0
#include "partita/compiled/algebra.hpp"
#include "partita/memory/host.hpp"
#include "support/partition_cases.hpp"
#ifdef PARTITA_WITH_BLAS
#include "partita/local/blas/gemm.hpp"
#endif

std::shared_ptr<void> bench::add_cpu_benchmarks(launcher& start, const command& asked,
                                                const std::vector<graph>& graphs) {
  const auto make_queue = [](const communicator&) {
#ifdef PARTITA_WITH_BLAS
    return device_queue<host>(1, blas::faster_gemm());
#else
    return device_queue<host>();
#endif
  };
  const auto all = std::make_shared<registry<host>>(start, asked, make_queue);
  add_policies(*all, graphs);
  return all;
}
