// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What layers with several heads share.

#include "partita/transfer/distribute.hpp"

namespace partita::nn {

/// The number of heads, and whether they are concatenated or averaged.
struct attention_heads {
  int count = 1;
  bool averaged = false;

  /// The columns of one of them in a layer that gives `out`. Throws shape_error when the heads do not divide
  /// `out`.
  local_index width_of(global_index out) const {
    if (!averaged && out % count != 0)
      base::throw_error<shape_error>({count, " heads do not divide a width of ", out});
    return base::to_local(averaged ? out : out / count, "the width of a head");
  }
};

/// The matrix that averages heads that are side by side (heads width x width). Local.
template <class T, class Device>
dense<T, replicated, Device> head_average(const mesh<Device>& m, int heads, global_index width) {
  const T part = T(1) / static_cast<T>(heads);
  return generate<replicated, T>(m, {heads * width, width}, [&](global_index j, global_index o) {
    return j % width == o ? part : T(0);
  });
}
/// The matrix that repeats the number of a head in each of its columns (heads x heads width). Local.
template <class T, class Device>
dense<T, replicated, Device> head_columns(const mesh<Device>& m, int heads, global_index width) {
  return generate<replicated, T>(m, {heads, heads * width}, [&](global_index h, global_index j) {
    return j / width == h ? T(1) : T(0);
  });
}

}  // namespace partita::nn
