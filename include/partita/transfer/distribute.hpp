// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Distributing matrices from entries, values and functions, and collecting them.

#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/matrix/sparse.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/csr_rows.hpp"
#include "partita/transfer/entry_checks.hpp"
#include "partita/transfer/entry_routing.hpp"
#include "partita/transfer/redistribution.hpp"
#include "partita/transfer/scaled_pattern.hpp"

namespace partita {

/// X(i, j) = f(i, j) (rows.size() x cols.size()) in layout `l`. Each rank evaluates f on its own block.
/// Local; no communication.
template <class T, class Device, class Function>
dense<T, dynamic_layout, Device> generate(const mesh<Device>& m, layout l, const blocking& rows,
                                          const blocking& cols, Function f) {
  dense<T, dynamic_layout, Device> x(m, l, rows, cols);
  const interval r = x.row_range(), c = x.col_range();
  std::vector<T> values;
  values.reserve(x.values().size());
  for (global_index i = r.begin; i < r.end; ++i)
    for (global_index j = c.begin; j < c.end; ++j) values.push_back(static_cast<T>(f(i, j)));
  copy(m.queue(), std::span<const T>(values), x.values());
  return x;
}
template <class T, class Device, class Function>
dense<T, dynamic_layout, Device> generate(const mesh<Device>& m, layout l, matrix_shape shape, Function f) {
  return generate<T>(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
                     blocking::even(shape.cols, m.shape(), nesting::cols), f);
}
/// As above, with a static layout.
template <layout L, class T, class Device, class Function>
dense<T, L, Device> generate(const mesh<Device>& m, const blocking& rows, const blocking& cols, Function f) {
  return dense<T, L, Device>(generate<T>(m, L, rows, cols, f));
}
template <layout L, class T, class Device, class Function>
dense<T, L, Device> generate(const mesh<Device>& m, matrix_shape shape, Function f) {
  return dense<T, L, Device>(generate<T>(m, L, shape, f));
}

namespace transfer::detail {

template <class Range>
using entry_of = std::remove_cvref_t<decltype(*std::begin(std::declval<const Range&>()))>;
/// A range of triplet<T>.
template <class Range>
concept triplets = std::same_as<entry_of<Range>, triplet<decltype(entry_of<Range>::value)>>;

/// The range itself; any contiguous range as a std::span, to limit instantiations.
template <triplets Range>
const Range& entries_of(const Range& entries) {
  return entries;
}
template <triplets Range>
requires requires(const Range& r) { std::data(r); }
std::span<const entry_of<Range>> entries_of(const Range& entries) {
  return {std::data(entries), std::size(entries)};
}

}  // namespace transfer::detail

/// X in layout `l` from the row-major values (shape.rows x shape.cols) of rank `root`, a contiguous range;
/// the range of every other rank is ignored and may be empty. Collective over the mesh. What travels: each
/// rank's block, from `root`. Throws shape_error when the sizes disagree.
template <class Device, class Values>
requires std::is_floating_point_v<comm::element_of<const Values>>
auto distribute(const mesh<Device>& m, layout l, matrix_shape shape, const Values& all, int root = 0,
                std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  using T = comm::element_of<const Values>;
  const std::span<const T> values(std::data(all), std::size(all));
  dense<T, dynamic_layout, Device> x(m, l, shape);
  const bool mine = m.rank() == root;
  if (mine && static_cast<global_index>(values.size()) != shape.rows * shape.cols)
    base::throw_error<shape_error>(
        {"a matrix of ", shape, " cannot be made from ", values.size(), " values"});
  std::vector<global_index> send(static_cast<std::size_t>(m.size()), 0), recv(send);
  std::vector<T> outgoing, incoming(x.values().size());
  for (int q = 0; mine && q < m.size(); ++q) {
    const partition::rectangle r =
        partition::block_of(x.row_blocking(), x.col_blocking(), l, m.shape().at(q));
    send[static_cast<std::size_t>(q)] = r.size();
    for (global_index i = r.rows.begin; i < r.rows.end; ++i)
      outgoing.insert(outgoing.end(), values.begin() + i * shape.cols + r.cols.begin,
                      values.begin() + i * shape.cols + r.cols.end);
  }
  recv[static_cast<std::size_t>(root)] = static_cast<global_index>(incoming.size());
  m.world().all_to_all(outgoing, send, incoming, recv);
  copy(m.queue(), std::span<const T>(incoming), x.values());
  return x;
}

/// The whole of X, row-major (rows x cols), on every rank. Collective over the mesh. What travels: an
/// all-gather of the blocks.
template <class T, layout L, class Device>
std::vector<T> collect(const dense<T, L, Device>& x,
                       std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  const dense<T, dynamic_layout, Device> whole = redistribute(x, replicated);
  std::vector<T> values(whole.values().size());
  copy(x.mesh().queue(), whole.values(), std::span<T>(values));
  return values;
}

namespace transfer::detail {

template <class T, class Device>
using shared_tiles = std::shared_ptr<local::csr_tiles<T, Device>>;

/// entries.final_value(row, column, sum), where the range has such a member, or the sum.
template <class T, class Entries>
T final_value(const Entries& entries, transfer::side of, global_index row, global_index col, T sum) {
  if constexpr (requires { entries.final_value(row, col, sum); })
    return of == transfer::side::straight ? entries.final_value(row, col, sum)
                                          : entries.final_value(col, row, sum);
  else
    return sum;
}

/// entries.factors(), where the range has such a member.
template <class Entries>
std::optional<transfer::entry_factors> factors_of(const Entries& entries, transfer::side of) {
  std::optional<transfer::entry_factors> found;
  if constexpr (requires { entries.factors(); }) found = entries.factors();
  if (found && of == transfer::side::transposed) std::swap(found->rows, found->columns);
  return found;
}

template <class T, class Device, class Entries>
shared_tiles<T, Device> make_local_tiles(const mesh<Device>& m, layout l, const blocking& rows,
                                         const blocking& cols, const Entries& entries, transfer::side of) {
  const interval mine = rows.block(l.rows, m.at());
  const std::vector<interval> columns = partition::tile_columns(l, cols, m.at());
  return std::make_shared<local::csr_tiles<T, Device>>(local::make_csr_tiles<T, Device>(
      m.queue(), mine, columns, transfer::send_to_holders<T>(m, l, rows, cols, entries, of), m.tile_entries(),
      transfer::host_threads(m.queue()),
      [&](std::size_t t, global_index row, global_index col, T sum) {
        return final_value(entries, of, mine.begin + row, columns[t].begin + col, sum);
      },
      [&]([[maybe_unused]] const local::tile_shape& shape, [[maybe_unused]] bool ones) {
        std::optional<local::tile_factors<T>> found;
        if constexpr (requires { entries.factors(); })
          found = transfer::factors_of_tiles<T>(m, factors_of(entries, of), mine, columns, shape, ones);
        return found;
      }));
}

template <class Entries>
bool has_equal_factors(const Entries& entries) {
  const auto factors = factors_of(entries, transfer::side::straight);
  return !factors || std::ranges::equal(factors->rows, factors->columns);
}

/// Throws as distribute does for invalid entries. What travels: see require_shares.
template <class Device, class Entries>
void require_entries(const mesh<Device>& m, matrix_shape shape, const Entries& entries,
                     transfer::sharing shares) {
  if (shares == transfer::sharing::trusted) return;
  transfer::require_entries(shape, entries, 1,
                            m.size() == 1 ? "" : base::sentence_of({" (given by rank ", m.rank(), ")"}));
  if (const auto factors = factors_of(entries, transfer::side::straight))
    transfer::require_factors(shape, *factors);
  if (shares == transfer::sharing::disjoint) transfer::require_shares(m.world(), entries);
}

/// This rank's tiles of A and of A^T; see distribute.
template <class T, class Device, class Entries>
std::pair<shared_tiles<T, Device>, shared_tiles<T, Device>> distribute_tiles(
    const mesh<Device>& m, layout l, const blocking& rows, const blocking& cols, const Entries& entries,
    symmetry kind, transfer::sharing shares) {
  partition::require_sparse(m.shape(), l, rows, cols);
  const matrix_shape shape{rows.size(), cols.size()};
  require_entries(m, shape, entries, shares);
  const auto tiles_of = [&](const blocking& r, const blocking& c, transfer::side of) {
    return base::with_memory_for("a sparse matrix", {r.size(), c.size()},
                                 [&] { return make_local_tiles<T>(m, l, r, c, entries, of); });
  };
  const auto forward = tiles_of(rows, cols, transfer::side::straight);
  if (kind == symmetry::one_way) return {forward, nullptr};
  if (kind == symmetry::symmetric) {
    const bool trusted = shares == transfer::sharing::trusted;
    if (!(rows == cols) || (!trusted && !(has_equal_factors(entries) && is_symmetric(m.world(), entries))))
      base::throw_error<shape_error>({"a matrix of ", shape, " was declared symmetric but is not"});
    return {forward, forward};
  }
  return {forward, tiles_of(cols, rows, transfer::side::transposed)};
}

}  // namespace transfer::detail

/// A (rows.size() x cols.size()) in layout `l` from entries given collectively, each on one rank; duplicates
/// are summed. `entries`: any forward range of triplets, such as a vector, or transfer::csr_rows over
/// borrowed CSR arrays; transfer::scaled_pattern stores no values. `operand`: the layout to which products
/// redistribute dense matrices that A cannot multiply in place.
///
/// Collective over the mesh. What travels: each entry, to the ranks that hold it, and again for A^T unless A
/// is symmetric or one_way; an all-gather of one element, which detects ranks that all give the same entries.
/// Throws shape_error, before anything is sent, for a layout that no sparse matrix has; naming an entry
/// outside the matrix; and when A is declared symmetric but is not (see is_symmetric); error naming an entry
/// that is not finite, and when all ranks, or two, give the same entries, unless `shares` declares that
/// they overlap and are to be summed.
template <class Device, transfer::detail::triplets Entries>
auto distribute(const mesh<Device>& m, layout l, const blocking& rows, const blocking& cols,
                const Entries& entries, symmetry kind = symmetry::general, std::optional<layout> operand = {},
                transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  using T = decltype(transfer::detail::entry_of<Entries>::value);
  auto [forward, backward] = transfer::detail::distribute_tiles<T>(
      m, l, rows, cols, transfer::detail::entries_of(entries), kind, shares);
  return sparse<T, dynamic_layout, Device>(m, l, operand, rows, cols, std::move(forward),
                                           std::move(backward));
}
/// As above, with even blocks.
template <class Device, transfer::detail::triplets Entries>
auto distribute(const mesh<Device>& m, layout l, matrix_shape shape, const Entries& entries,
                symmetry kind = symmetry::general, transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  return distribute(m, l, blocking::even(shape.rows, m.shape(), nesting::rows),
                    blocking::even(shape.cols, m.shape(), nesting::rows), entries, kind, {}, shares, where);
}
/// In the layout of a policy; products redistribute dense matrices of any layout to the policy's and back.
/// The columns of A are cut as the rows of X are: `cols` is a blocking with nesting::rows, too. Throws
/// as require_mesh does.
template <class Device, transfer::detail::triplets Entries>
auto distribute(const mesh<Device>& m, const policy& p, const blocking& rows, const blocking& cols,
                const Entries& entries, symmetry kind = symmetry::general,
                transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  require_mesh(p, m.shape(), m.size());
  return distribute(m, p.sparse, rows, cols, entries, kind, p.dense, shares, where);
}
/// As above, with even blocks.
template <class Device, transfer::detail::triplets Entries>
auto distribute(const mesh<Device>& m, const policy& p, matrix_shape shape, const Entries& entries,
                symmetry kind = symmetry::general, transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  return distribute(m, p, blocking::even(shape.rows, m.shape(), nesting::rows),
                    blocking::even(shape.cols, m.shape(), nesting::rows), entries, kind, shares, where);
}
/// As above, with a static layout.
template <layout L, class Device, class Entries>
auto distribute(const mesh<Device>& m, const blocking& rows, const blocking& cols, const Entries& entries,
                symmetry kind = symmetry::general, transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  const auto a = distribute(m, L, rows, cols, entries, kind, {}, shares, where);
  return sparse<typename decltype(a)::value_type, L, Device>(a);
}
template <layout L, class Device, transfer::detail::triplets Entries>
auto distribute(const mesh<Device>& m, matrix_shape shape, const Entries& entries,
                symmetry kind = symmetry::general, transfer::sharing shares = transfer::sharing::disjoint,
                std::source_location where = std::source_location::current()) {
  const auto a = distribute(m, L, shape, entries, kind, shares, where);
  return sparse<typename decltype(a)::value_type, L, Device>(a);
}
template <layout L, class Device, class Values>
requires std::is_floating_point_v<comm::element_of<const Values>>
auto distribute(const mesh<Device>& m, matrix_shape shape, const Values& all, int root = 0,
                std::source_location where = std::source_location::current()) {
  auto x = distribute(m, L, shape, all, root, where);
  return dense<typename decltype(x)::value_type, L, Device>(std::move(x));
}

}  // namespace partita
