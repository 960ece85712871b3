// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether the outputs of hidden layers are stored for backward or computed again.

#include <cstddef>
#include <cstdint>

namespace partita::nn {

/// What backward reads of the outputs of hidden layers. Computing an output again is never cheaper in bytes:
/// stored, it is written once and read twice, and computing it again writes it, and reads its operands, once
/// more. It is for stores that are too small.
enum class activation_checkpointing : std::uint8_t {
  never,  ///< all outputs are stored
  always  ///< of every few layers the output is stored, and those between are computed again from it
};

/// The outputs that `activation_checkpointing::always` stores in a sequence of n layers: of every k-th, k the
/// least with k * k >= n, and of those after the last of these, which backward reads first. The others are
/// computed again, those of k layers at a time. Source: Chen, Xu, Zhang, Guestrin (arXiv:1604.06174),
/// section 3.
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
