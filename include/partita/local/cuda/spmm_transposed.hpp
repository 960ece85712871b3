// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Product with the transpose of a CSR block, without a stored index of its columns: runs of entries are
/// sorted by column in a workspace of bounded size, and the rows of y are folded over each run in turn. The
/// sort is stable and runs are in order, so that results are bitwise reproducible, without atomic operations.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/cuda/inverse.hpp"
#include "partita/local/cuda/row_product.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Per-queue workspace of products with transposed blocks.
struct scatter_memory {
  explicit scatter_memory(const device_queue<cuda_device>&) {}

  buffer<local_index, cuda_device> indices;
};

/// Number and column of the entries of a run that begins `first` entries after the first one.
struct list_run {
  const local_index* offsets;
  const local_index* columns;
  local_index first;
  local_index* numbers;
  local_index* columns_of_run;

  constexpr void operator()(std::int64_t t) const {
    const auto e = static_cast<local_index>(offsets[0] + first + t);
    numbers[t] = e;
    columns_of_run[t] = columns[e];
  }
};

/// rows[t] = row of entry numbers[t].
struct find_rows {
  pattern_rows a;
  const local_index* numbers;
  local_index* rows;

  constexpr void operator()(std::int64_t t) const { rows[t] = row_of_entry(a, 0, numbers[t]); }
};

namespace scatter_detail {

/// Most entries that are sorted at once, for a block of this many columns: the offsets of the columns are
/// found anew for each run.
inline std::int64_t longest_run(local_index cols) {
  return std::max<std::int64_t>(std::int64_t{1} << 18, cols);
}

/// y = alpha a^T x + beta y over the entries [first, first + count); `memory` has room for four indices per
/// entry and one per offset.
template <class T, class X>
void add_run(const device_queue<cuda_device>& q, const local::csr_view<T>& a, local_index first,
             local_index count, const matrix_view<const X>& x, T alpha, T beta, const matrix_view<T>& y,
             local_index* memory) {
  const std::int64_t room = quotient_up(count, 4) * 4;
  sorted_pairs<local_index, local_index> by_column{memory, memory + room, memory + 2 * room,
                                                   memory + 3 * room};
  local_index* const offsets = memory + 4 * room;
  on_cuda::launch(q, count, list_run{a.offsets, a.columns, first, by_column.values, by_column.keys});
  if (count > 0) on_cuda::sort_pairs(q, count, on_cuda::bits_below(a.cols), by_column);
  local_index* const rows = by_column.other_values;
  on_cuda::launch(q, count, find_rows{rows_of(a), by_column.values, rows});
  on_cuda::launch(q, std::int64_t{a.cols} + 1, find_columns{by_column.keys, count, offsets});
  sum_rows(q, pattern_rows{a.cols, a.rows, offsets, count}, rows,
           single_values<T>{a.values, by_column.values}, x,
           local::spmm_epilogue<T>{.alpha = alpha, .beta = beta}, y);
}

/// The same over all entries, in runs of at most `most`.
template <class T, class X>
void add_runs(const device_queue<cuda_device>& q, const local::csr_view<T>& a, std::int64_t most,
              const matrix_view<const X>& x, T alpha, T beta, const matrix_view<T>& y) {
  const std::int64_t count = entry_count(q, a);
  auto& indices = q.resource<scatter_memory>().indices;
  indices.reset(q, static_cast<std::size_t>(4 * (std::min(count, most) + 4) + a.cols + 1));
  std::int64_t done = 0;
  do {
    const std::int64_t size = std::min(count - done, most);
    add_run(q, a, static_cast<local_index>(done), static_cast<local_index>(size), x, alpha,
            done == 0 ? beta : T{1}, y, indices.data());
    done += size;
  } while (done < count);
}

}  // namespace scatter_detail

/// As on_host::spmm_transposed; columns may be in any order. Needs four indices per entry of a run, of at
/// most 2^18 or a.cols entries, as workspace of the queue. Synchronises the queue if the view does not store
/// its number of entries.
template <class T>
void spmm_transposed(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
                     local::scalar<T> alpha, local::scalar<T> beta, matrix_view<T> y) {
  local::require_product("spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
  scatter_detail::add_runs<T, T>(q, a, scatter_detail::longest_run(a.cols), x, alpha, beta, y);
}
/// As on_host::spmm_transposed for x stored as bfloat16.
template <std::same_as<float> T>
void spmm_transposed(const device_queue<cuda_device>& q, local::input_csr<T> a,
                     matrix_view<const base::bfloat16> x, local::scalar<T> alpha, local::scalar<T> beta,
                     matrix_view<T> y) {
  local::require_product("spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
  scatter_detail::add_runs<T>(q, a, scatter_detail::longest_run(a.cols), x, alpha, beta, y);
}

}  // namespace partita::on_cuda
