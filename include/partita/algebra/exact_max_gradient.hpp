// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The gradient of a maximum over neighbours on a reproducible mesh.

#include <span>
#include <utility>
#include <vector>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/transfer/halo.hpp"

namespace partita::algebra {

/// dH: the gradients in the table's rows are summed in double on a common grid, at the owners of the rows.
///
/// Collective over the mesh: constructor and call. What travels: what a scatter_add of the halo sends, as
/// doubles, once for float and twice for double; and an all-reduce of two elements.
template <class T, class Device>
class exact_max_gradient final : public max_gradient<T, Device> {
 public:
  /// See reproducible_verbs.
  exact_max_gradient(const mesh<Device>& m, const blocking& sources, const std::vector<global_index>& needed,
                     global_index terms)
      : mesh_(m), terms_(terms), halo_(m.with_exact_sums(), sources, needed) {}

  void operator()(const local::csr_slices<T>& rows, matrix_view<const local_index> winners,
                  matrix_view<const T> dy, matrix_view<T> dh) override {
    const auto& q = mesh_.queue();
    const base::exact_grid grid = detail::common_grid(mesh_, magnitude(q, dy), 1, terms_);
    const auto size = static_cast<std::size_t>(dh.rows) * static_cast<std::size_t>(dh.cols);
    const auto table_rows = static_cast<local_index>(halo_.table_rows());
    table_.grow(q, static_cast<std::size_t>(table_rows) * static_cast<std::size_t>(dh.cols));
    sums_.grow(q, base::exact_sums<T> * size);
    const matrix_view<double> table{table_.data(), table_rows, dh.cols, dh.cols};
    base::for_exact_parts<T>(grid, [&](int level, auto part_of) {
      fill(q, 0.0, table);
      for (const local::csr_slice<T>& part : rows)
        exact_max_scatter(q, part.entries, part.rows_of(winners), part.rows_of(dy), part_of,
                          table);  // (own + needed, f)
      halo_.scatter_add(table,
                        {sums_.data() + static_cast<std::size_t>(level) * size, dh.rows, dh.cols, dh.cols});
    });
    round_sums(q, std::as_const(sums_).span().first(base::exact_sums<T> * size), 1.0,
               std::span<T>(dh.data, size));
  }

  traffic predicted(global_index width) const override {
    return global_index{base::exact_sums<T>} * halo_.predicted_scatter(width) +
           detail::predicted_all_reduce(mesh_, 2);
  }

 private:
  mesh<Device> mesh_;
  global_index terms_;
  transfer::halo<double, Device> halo_;
  buffer<double, Device> table_, sums_;
};

}  // namespace partita::algebra
