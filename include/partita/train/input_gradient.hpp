// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The gradient of a learned input of mini-batches.

#include <memory>
#include <optional>
#include <vector>

#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/train/batch_input.hpp"

namespace partita::nn {

/// d loss / d X for the rows of X that the samples of any rank contain, from the gradients of the inputs of
/// all micro-batches: added up where they are and sent to the ranks that have the rows, or on a reproducible
/// mesh kept, and added up exactly (algebra::list_sums).
///
/// Collective over the mesh of X: constructor, begin, sum and predicted. What travels: that of
/// gather_rows_plan::take, or of algebra::list_sums.
template <class T, class Device>
class input_gradient {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// x (n x f); `alone`: the mesh of one rank on which layers compute.
  input_gradient(const dense<T, dynamic_layout, Device>& x, const mesh<Device>& alone)
      : alone_(alone), columns_(x.col_range().size()) {
    if (const auto* const verbs = algebra::reproducible_verbs_of<T>(x.mesh()))
      sums_ = verbs->make_list_sums(x);
  }

  /// Before the gradients of an iteration, of these micro-batches.
  void begin(const std::vector<sampling::sample<T>>& parts) {
    if (!sums_) return;
    ids_.resize(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) ids_[k] = parts[k].vertices;
    sums_->assign(ids_);
  }
  /// dh: the gradient of the input of micro-batch k, which `input` has. Local.
  void add(batch_input<T, Device>& input, std::size_t k, const matrix& dh) {
    if (sums_) return sums_->add(k, dh);
    input.rows().add(k, dh);
  }
  /// After all micro-batches.
  void sum(batch_input<T, Device>& input) {
    if (sums_) return take(*sums_);
    take(input.rows());
  }
  /// What this rank receives for an iteration, between its begin and the next one.
  traffic predicted(batch_input<T, Device>& input) {
    return sums_ ? sums_->predicted() : input.rows().predicted_scatter();
  }

  /// The rows, as indices within this rank's block, and their gradients (rows x columns of the block).
  const std::vector<global_index>& rows() const { return rows_; }
  matrix& value() { return value_.value(); }
  const matrix& value() const { return value_.value(); }

 private:
  template <class Sums>
  void take(Sums& sums) {
    rows_ = sums.touched_rows();
    value_.reset();
    value_.emplace(alone_, matrix_shape{std::ssize(rows_), columns_});
    sums.take(*value_);
  }

  mesh<Device> alone_;
  global_index columns_;
  std::vector<global_index> rows_;
  std::optional<matrix> value_;
  std::vector<std::vector<global_index>> ids_;
  std::unique_ptr<algebra::list_sums<T, Device>> sums_;  ///< of a reproducible mesh
};

}  // namespace partita::nn
