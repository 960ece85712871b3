// SPDX-License-Identifier: Apache-2.0
#pragma once
// GraphSAGE written forward only, on whole graphs and on sampled blocks.

#include "partita/train/models.hpp"

namespace test_support {

/// As `sage`, with its parameters.
inline partita::nn::named_model<double, partita::host> recorded_sage() {
  using namespace partita;
  return {{.name = "recorded sage",
           .multiplies_with = graph::propagation_matrix::mean_normalized,
           .on_blocks = {2, true}},
          [](const auto& r) -> nn::model<double, host> {
            const auto layer = [&](std::size_t l, auto in, auto out, const auto& b) {
              const auto& mean = r.graph[l];
              return nn::recorded(b, mean.col_blocking(), in, [&](const auto& make, auto h) {
                const auto left = make.glorot("Wl", {in, out}), bias = make.filled("b", {1, out}),
                           right = make.glorot("Wr", {in, out});
                const auto own = gemm(first_rows(h, mean.row_blocking()), right);
                return add_row(bias, gemm(spmm(mean, h), left) + own);
              });
            };
            return {r.with, nn::chain<nn::relu>(r.with, r.widths(), layer)};
          }};
}

}  // namespace test_support
