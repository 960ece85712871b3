// SPDX-License-Identifier: Apache-2.0
// A kernel as a user writes it: a constexpr body, compiled for the device by what partita::cuda says.
#include <algorithm>
#include <cstdint>

#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

struct cut_at_zero {
  partita::matrix_view<float> x;

  constexpr void operator()(std::int64_t thread) const {
    float& value = x(static_cast<partita::local_index>(thread / x.cols),
                     static_cast<partita::local_index>(thread % x.cols));
    value = std::max(value, 0.0F);
  }
};

void cut(const partita::device_queue<partita::cuda_device>& q, partita::matrix_view<float> x);

void cut(const partita::device_queue<partita::cuda_device>& q, partita::matrix_view<float> x) {
  partita::on_cuda::launch(q, std::int64_t{x.rows} * x.cols, cut_at_zero{x});
}
