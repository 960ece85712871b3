// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether the outputs of hidden layers are stored for backward or computed again.

#include <cstddef>
#include <cstdint>

namespace partita::nn {

/// What backward reads of the outputs of hidden layers.
enum class recomputation : std::uint8_t {
  automatic,  ///< whichever far_bytes_of_output says is cheaper
  always,     ///< of every few layers the output is stored, and those between are computed again from it
  never       ///< all outputs are stored
};

/// What the output Z = f(H) of one hidden layer adds to the bytes between near and far memory in a training
/// step, for Z of `output` far bytes (n w values) and an f that reads `operands` far bytes, of A and of H.
/// Stored: forward writes Z, the next layer reads it, backward reads it: 3 Z. Computed again: these, and f
/// once more, which reads its operands and writes Z: 4 Z + operands. Z is far for its size, stored or not, so
/// that storing it is never dearer, in bytes or in time; computing it again is for stores that are too small.
constexpr std::uint64_t far_bytes_of_output(bool stored, std::uint64_t output, std::uint64_t operands) {
  return stored ? 3 * output : 4 * output + operands;
}

/// Whether outputs are computed again: under `automatic` where far_bytes_of_output is less, for which one
/// byte of an output with operands that are near speaks for all.
constexpr bool computes_again(recomputation how) {
  if (how != recomputation::automatic) return how == recomputation::always;
  return far_bytes_of_output(false, 1, 0) < far_bytes_of_output(true, 1, 0);
}

/// The outputs that `recomputation::always` stores in a sequence of n layers: of every k-th, k the least with
/// k * k >= n, and of those behind the last of these, which backward reads first. The others are computed
/// again, those of k layers at a time. Source: Chen, Xu, Zhang, Guestrin (arXiv:1604.06174), section 3.
class stored_outputs {
 public:
  explicit constexpr stored_outputs(std::size_t layers) : layers_(layers) {
    while (every_ * every_ < layers) ++every_;
  }

  /// Whether that of layer l, from 0, is.
  constexpr bool has(std::size_t l) const { return (l + 1) % every_ == 0 || l >= begin(layers_ - 1); }
  /// The first of the layers that are computed again together with layer l.
  constexpr std::size_t begin(std::size_t l) const { return l / every_ * every_; }

 private:
  std::size_t layers_, every_ = 1;
};

}  // namespace partita::nn
