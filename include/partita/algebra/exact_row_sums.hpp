// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows added up for the rows of a matrix on a reproducible mesh.

#include <deque>
#include <span>
#include <vector>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/transfer/gather_rows.hpp"

namespace partita::algebra {

/// G = the sum over ranks and lists of R_c^T G_c for the rows of X (n x f) that any list has, where row i of
/// R_c is the unit row of the i-th id of list c: what gather_rows_plan::take gives, with the same bits
/// however the rows G_c are dealt to ranks and lists.
///
///     exact_row_sums<T, Device> sums(x);
///     sums.assign(lists);
///     sums.add(c, g_c);  // for each c
///     sums.take(g);
///
/// Collective over the mesh of X: constructor, assign, touched_rows, take and predicted. What travels: as
/// in gather_rows_plan, in assign, and in take, as doubles, once for float and twice for double; take
/// also sends the maximum of all elements and the number of rows. The rows that were added are kept until
/// take.
template <class T, class Device>
class exact_row_sums final : public list_sums<T, Device> {
 public:
  using typename list_sums<T, Device>::matrix;

  /// For x and matrices placed like it, in whole or own columns. Not for a replicated x.
  template <layout L>
  explicit exact_row_sums(const dense<T, L, Device>& x,
                          transfer::gathered_columns columns = transfer::gathered_columns::whole)
      : part_(partita::mesh<Device>::alone(x.mesh())),
        plan_(x.mesh().with_exact_sums(), {x.row_blocking(), x.col_blocking(), x.layout()}, columns) {}

  /// Replaces the lists. Throws shape_error as gather_rows_plan::assign does.
  void assign(std::span<const std::vector<global_index>> lists) override {
    plan_.assign(lists);
    kept_.clear();
  }
  /// Adds a copy of g, whose rows are for the ids of list c. Local. Throws shape_error unless it has these
  /// rows.
  void add(std::size_t c, const matrix& g) override {
    if (g.shape() != plan_.shape(c))
      base::throw_error<shape_error>(
          {"the rows of list ", c, " are ", plan_.shape(c), ", but G is ", g.shape()});
    kept_.emplace_back(c, matrix(part_, g.shape()));  // (ids, f)
    copy(part_.queue(), std::span<const T>(g.values()), kept_.back().second.values());
  }
  /// See gather_rows_plan::touched_rows.
  const std::vector<global_index>& touched_rows() override { return plan_.touched_rows(); }
  /// G: touched rows x columns of this rank's block, on a mesh of one rank. Throws shape_error otherwise.
  void take(matrix& g) override {
    const auto& q = part_.queue();
    double largest = 0;
    global_index rows = 0;
    for (const auto& [c, x] : kept_) {
      largest = std::max(largest, magnitude(q, x.local()));
      rows += x.shape().rows;
    }
    const auto grid = partita::algebra::detail::common_grid(part_, largest, 1, rows);
    const std::size_t size = g.values().size();
    buffer<double, Device> sums(q, base::exact_sums<T> * size);
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      for (const auto& [c, x] : kept_) {
        dense<double, vertex_rows, Device> parts(part_, x.shape());  // (ids, f)
        exact_parts(q, x.values(), part, parts.values());
        plan_.add(c, parts);
      }
      dense<double, vertex_rows, Device> total(part_, g.shape());  // (touched, columns here)
      plan_.take(total);
      copy(q, std::span<const double>(total.values()),
           sums.span().subspan(static_cast<std::size_t>(level) * size, size));
    });
    round_sums(q, std::span<const double>(sums.span()), 1.0, g.values());
    kept_.clear();
  }

  /// What this rank receives in assign and take, after assign.
  traffic predicted() override {
    return plan_.predicted_assign() + global_index{base::exact_sums<T>} * plan_.predicted_scatter() +
           partita::algebra::detail::predicted_grid(part_);
  }

 private:
  partita::mesh<Device> part_;
  gather_rows_plan<double, Device> plan_;
  std::deque<std::pair<std::size_t, matrix>> kept_;
};

}  // namespace partita::algebra
