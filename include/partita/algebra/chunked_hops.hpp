// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Consecutive products in a policy's layout, whose first and last overlap with redistributions.

#include <optional>
#include <utility>

#include "partita/algebra/row_chunks.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/base/function.hpp"
#include "partita/transfer/redistribution.hpp"
#include "partita/transfer/row_split.hpp"
#include "partita/transfer/staged_redistribution.hpp"

namespace partita::algebra {

/// Z = f_K(... f_1(X)), f_k(Y) = a A Y + b C, with products in the layout of A's policy (all n x f): X, with
/// whole rows on each rank, is redistributed to that layout once, and Z back.
///
/// Collective over the mesh: constructor and members. What travels: redistribution of X and of Z, and K
/// products (none under feature_column). If every rank has all of A and `chunks` > 1, X is cut by the rows
/// that chunks of A are the first to need, and Z by the chunks' rows, if K > 1: the part of X for chunk j +
/// 1 is sent during the first product of chunk j, and that of Z for chunk j - 1 during the last product of
/// chunk j. Each row is still sent once. Source: Ai et al., NeutronTP (VLDB 2025), section 4.2.
template <class T, class Device>
class chunked_hops {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  /// A matrix in the policy's layout.
  using state = dense<T, dynamic_layout, Device>;

  /// `inner`: the policy's layout, multiplied_layout of A or of its transpose.
  chunked_hops(const sparse<T, dynamic_layout, Device>& a, layout inner, const blocking& features, int hops,
               std::size_t chunks, spmm_options options)
      : product_(a, inner, features, options),
        to_policy_(a.mesh(), a.col_blocking(), features, vertex_rows, inner),
        from_policy_(a.mesh(), a.row_blocking(), features, inner, vertex_rows),
        hops_(hops) {
    if (chunks < 2 || hops < 1 || partition::same_blocks(a.mesh().shape(), vertex_rows, inner) ||
        !row_chunks<T, Device>::fits(a))
      return;
    cut_.emplace(a, features, inner, chunks);
  }

  /// arrived = x, unless x arrives during the first product.
  void begin(const matrix& x, state& arrived) {
    if (!cut_) to_policy_(x, arrived);
  }
  /// to = f.a A from + f.b old, product k = 0, 1, ... If X and Z are cut, the first product brings x to
  /// `arrived`, which is `from`, and the last one sends `to` to z.
  void operator()(int k, const matrix& x, state& arrived, const state& from, base::linear_combination<T> f,
                  const state& old, state& to, matrix& z) {
    if (k + 1 == hops_ && leaves_in_product()) return multiply_leaving(from, f, old, to, z);
    if (k == 0 && cut_)
      multiply_arriving(x, arrived, to);
    else
      product_(from, to);
    if (f.b != 0)
      zip(to, old, to, f);
    else if (f.a != 1)
      transform(to, to, base::scaled<T>{f.a});
  }
  /// Whether z has been sent when the last product returns: z is not cut if that is also the first one.
  bool leaves_in_product() const { return cut_ && hops_ > 1; }
  /// z = last, unless it has already been sent.
  void end(const state& last, matrix& z) {
    if (!leaves_in_product()) from_policy_(last, z);
  }

  /// What this rank receives in all of this, in closed form.
  traffic predicted() const {
    return static_cast<global_index>(hops_) * product_.predicted() +
           (cut_ ? cut_->split.predicted() : to_policy_.predicted()) +
           (leaves_in_product() ? cut_->gather.predicted() : from_policy_.predicted());
  }

 private:
  struct overlapped {
    overlapped(const sparse<T, dynamic_layout, Device>& a, const blocking& features, layout inner,
               std::size_t chunks)
        : product(a, chunks),
          split(a.mesh(), a.col_blocking(), features, vertex_rows, inner, product.first_needed()),
          gather(a.mesh(), a.row_blocking(), features, inner, vertex_rows, product.rows()) {}

    row_chunks<T, Device> product;
    transfer::row_split<T, Device> split;
    transfer::staged_redistribution<T, Device> gather;
  };

  /// to = A x, as the rows of x arrive.
  void multiply_arriving(const matrix& x, state& arrived, state& to) {
    cut_->split.start(0, x.local());
    for (std::size_t j = 0; j < cut_->product.count(); ++j) {
      if (j + 1 < cut_->product.count()) cut_->split.start(j + 1, x.local());
      cut_->split.finish(j, arrived.local());
      cut_->product(j, std::as_const(arrived).local(), to.local());
    }
  }
  /// to = f.a A from + f.b old; its rows are sent to z as they are computed.
  void multiply_leaving(const state& from, base::linear_combination<T> f, const state& old, state& to,
                        matrix& z) {
    const std::size_t count = cut_->product.count();
    for (std::size_t j = 0; j < count; ++j) {
      cut_->product(j, f.a, from.local(), f.b, old.local(), to.local());
      cut_->gather.start(j, std::as_const(to).local());
      if (j > 0) cut_->gather.finish(j - 1, std::as_const(to).local(), z.local());
    }
    cut_->gather.finish(count - 1, std::as_const(to).local(), z.local());
  }

  spmm_plan<T, Device> product_;
  redistribution<T, Device> to_policy_, from_policy_;
  int hops_;
  std::optional<overlapped> cut_;
};

}  // namespace partita::algebra
