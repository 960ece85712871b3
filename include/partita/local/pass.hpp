// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Passes: kernels with what they do to their operands. On a queue without a pass_runner a pass is one call
/// of its kernel; with far memory, kernels of far operands are called chunk by chunk (see out_of_core).

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "partita/base/function.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/inverse.hpp"
#include "partita/local/host/move.hpp"
#include "partita/local/operands.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

/// Calls f(first row, views of the rows ...), or f(views ...) if it takes no more, for consecutive blocks of
/// rows of the operands, which all have as many rows: once, for all rows, unless one of the operands is far.
/// f is given near copies of far rows. What f reads of rows in other blocks is not there. Throws what f
/// throws, and budget_error if the window of the queue does not hold a row of each operand twice. `what`:
/// runs, for those who observe passes.
template <class Device, class F, class... X>
void by_rows(const device_queue<Device>& q, const char* what, const F& f, const X&... x) {
  const std::array<operand, sizeof...(X)> operands{x...};
  const auto kernel = [&](const chunk& c) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_invocable_v<const F&, decltype(X::view_of(x))...>)
        f(X::view_of(c.operands[I])...);
      else
        f(c.first_row, X::view_of(c.operands[I])...);
    }
    (std::make_index_sequence<sizeof...(X)>());
  };
  if (auto* const runner = runner_of(q)) return runner->by_rows(q, what, operands, kernel);
  kernel({.operands = operands.data()});
}
template <class Device, class F, class... X>
requires(!std::is_convertible_v<const F&, const char*>) void by_rows(const device_queue<Device>& q,
                                                                     const F& f, const X&... x) {
  by_rows(q, "rows", f, x...);
}

/// Rows of a pattern, or all of it.
template <class T>
struct edge_chunk : chunk {
  csr_view<T> pattern;       ///< without values; columns index what f is given of operands of columns
  csr_inverse_view inverse;  ///< if asked for; not of all of a pattern

  explicit edge_chunk(const chunk& c)
      : chunk(c),
        pattern{c.entries.rows,    c.entries.cols, c.entries.offsets,
                c.entries.columns, nullptr,        c.entries.entries},
        inverse{c.entries.rows, c.entries.cols,  c.column_offsets,
                c.entry_rows,   c.entry_numbers, c.entries.entries} {}
};

namespace detail {

/// y = beta y; does not read y if beta is 0.
template <class T, class Device>
void scale_rows(const device_queue<Device>& q, scalar<T> beta, matrix_view<T> y) {
  if (beta == T(0))
    by_rows(
        q, "rows: fill", [&](auto rows) { fill(q, T(0), rows); }, writes(y));
  else if (beta != T(1))
    by_rows(
        q, "rows: transform", [&](auto rows) { transform(q, base::scaled<T>{beta}, rows, rows); },
        updates(y));
}

/// For operands of T, and of local_index beside them.
template <class T, class Device>
struct column_kernels {
  using rows = std::span<const local_index>;

  static void gather(const device_queue<Device>& q, const operand& from, rows list, std::byte* to) {
    if (from.element == sizeof(T))
      gather_rows(q, rows_of<const T>(from), list, reinterpret_cast<T*>(to));
    else
      gather_rows(q, rows_of<const local_index>(from), list, reinterpret_cast<local_index*>(to));
  }
  static void place(const device_queue<Device>& q, const operand& from, rows list, rows places,
                    const operand& to) {
    if (from.element == sizeof(T))
      move_rows(q, rows_of<const T>(from), list, places, rows_of<T>(to));
    else
      move_rows(q, rows_of<const local_index>(from), list, places, rows_of<local_index>(to));
  }
  static void name(const device_queue<Device>& q, rows list, rows places, local_index* to) {
    scatter_rows(q, list.data(), places, matrix_view<local_index>{to, 0, 1, 1});
  }
  static void add(const device_queue<Device>& q, const std::byte* from, rows list, const operand& to) {
    scatter_add_distinct_rows(q, reinterpret_cast<const T*>(from), list, rows_of<T>(to));
  }
  static void scale(const device_queue<Device>& q, double beta, const operand& x) {
    detail::scale_rows<T>(q, static_cast<T>(beta), rows_of<T>(x));
  }
  static constexpr row_kernels<Device> gathering{&gather, &place, &name, nullptr, nullptr},
      adding{&gather, &place, &name, &add, &scale};
};

}  // namespace detail

/// Passes over the entries of patterns, planned when an operand is first found far.
template <class Device>
class entry_passes {
 public:
  entry_passes() = default;
  /// With inverses that plans of one pattern share.
  explicit entry_passes(std::shared_ptr<csr_inverses<Device>> shared) : inverses_(std::move(shared)) {}

  /// Calls f(edge_chunk, views of the operands ...) for consecutive rows of a: once, for all of them, unless
  /// a or an operand is far. f gets a pointer to the values of entries, those of the chunk's first entry, and
  /// views of rows. What is far, f is given near copies of; operands of columns, if one of them is far, are
  /// tables of those rows that the chunk needs, and those that are added have any values in them. A row that
  /// does not fit lies in several chunks: f then gets the same row again, with what it wrote. `number`: tells
  /// patterns apart whose arrays are received in the same memory.
  ///
  /// Throws what f throws, and budget_error if the window does not hold one entry with its rows twice.
  template <class T, class F, class... X>
  void operator()(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                  const pass_options& with, const F& f, const X&... x) {
    const std::array<operand, sizeof...(X)> operands{x...};
    const auto kernel = [&](const chunk& c) {
      [&]<std::size_t... I>(std::index_sequence<I...>) { f(edge_chunk<T>(c), X::view_of(c.operands[I])...); }
      (std::make_index_sequence<sizeof...(X)>());
    };
    const entry_pass<Device> pass = pass_of<X...>(number, a, with);
    if (auto* const runner = runner_of(q)) return runner->by_entries(q, plans_, pass, operands, kernel);
    if constexpr (!memory::enqueues<Device>) {
      kernel({.operands = operands.data(), .entries = pass.a});
    } else {
      struct in_pass {
        running_pass::pattern &now, before = now;
        ~in_pass() { now = before; }
      } in{q.template resource<running_pass>().now};
      in.now = {a.offsets, nullptr, number, &kept_};
      kernel({.operands = operands.data(), .entries = pass.a});
    }
  }

  /// The inverse of a, made when first asked for: for calls in which nothing is far.
  template <class T>
  const csr_inverse<Device>& inverse(const device_queue<Device>& q, std::size_t number,
                                     const csr_view<T>& a) {
    const auto key = std::tuple(a.offsets, a.columns, number);
    auto found = inverses_->find(key);
    if (found == inverses_->end()) found = inverses_->try_emplace(key, inverse_of(q, a)).first;
    if constexpr (memory::enqueues<Device>)
      q.template resource<running_pass>().now.inverse_offsets = found->second.offsets.data();
    return found->second;
  }
  /// Makes the inverse of a where passes will ask for it.
  template <class T>
  void prepare_inverse(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a) {
    if (runs_whole(q)) inverse(q, number, a);
  }

  /// What passes in such a call, in closed form: nothing unless something is far.
  template <class T, class... X>
  memory::far_traffic predicted(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                                const pass_options& with, const X&... x) {
    const std::array<operand, sizeof...(X)> operands{x...};
    auto* const far = far_of(q);
    return far == nullptr ? memory::far_traffic()
                          : far->predicted(q, plans_, pass_of<X...>(number, a, with), operands);
  }
  /// Its chunks: none unless something is far.
  template <class T, class... X>
  std::span<const far_chunk> chunks(const device_queue<Device>& q, std::size_t number, const csr_view<T>& a,
                                    const pass_options& with, const X&... x) {
    const std::array<operand, sizeof...(X)> operands{x...};
    return far_of(q)->chunks(q, plans_, pass_of<X...>(number, a, with), operands);
  }

 private:
  template <class... X, class T>
  static entry_pass<Device> pass_of(std::size_t number, const csr_view<T>& a, const pass_options& with) {
    entry_pass<Device> p{{a.rows, a.cols, a.offsets, a.columns, a.entries}, number, with};
    (take_kernels<X>(p), ...);
    return p;
  }
  /// Those for rows that columns index; that add, if an operand before is added to.
  template <class X>
  static void take_kernels(entry_pass<Device>& p) {
    using kernels = detail::column_kernels<typename X::number, Device>;
    if constexpr (X::adds)
      p.kernels = &kernels::adding;
    else if constexpr (X::gathers)
      if (p.kernels == nullptr) p.kernels = &kernels::gathering;
  }

  std::shared_ptr<void> plans_, kept_;
  std::shared_ptr<csr_inverses<Device>> inverses_ = std::make_shared<csr_inverses<Device>>();
};

namespace detail {

template <class Device>
void run_by_list(const device_queue<Device>& q, std::span<const local_index> list, const operand& rows,
                 const void* packed, base::function_reference<void(const device_queue<Device>&)> kernel) {
  if (auto* const runner = runner_of(q)) return runner->by_list(q, list, rows, packed, kernel);
  kernel(q);
}

}  // namespace detail

/// to[i n + j] = from(rows[i], j): the kernel gather_rows, of near or far operands.
template <class T, class Device>
void pack_rows(const device_queue<Device>& q, input_view<T> from, std::span<const local_index> rows, T* to) {
  detail::run_by_list<Device>(q, rows, reads(from), to,
                              [&](const device_queue<Device>& on) { gather_rows(on, from, rows, to); });
}

/// A cache for rows of x, whose first one is row `first` of the whole matrix; null unless x is far.
template <class T, class Device>
std::unique_ptr<memory::row_cache> make_row_cache(const device_queue<Device>& q, input_view<T> x,
                                                  global_index first) {
  auto* const far = far_of(q);
  return far == nullptr
             ? nullptr
             : far->make_row_cache(q, reads(x), first, detail::column_kernels<T, Device>::gathering);
}

/// to(rows[i], j) = from[i n + j], the rows[i] distinct: the kernel scatter_rows, of near or far operands.
template <class T, class Device>
void unpack_rows(const device_queue<Device>& q, const scalar<T>* from, std::span<const local_index> rows,
                 matrix_view<T> to) {
  detail::run_by_list<Device>(q, rows, writes(to), from,
                              [&](const device_queue<Device>& on) { scatter_rows(on, from, rows, to); });
}

/// to(rows[i], j) += from[i n + j], the rows[i] distinct: the kernel scatter_add_distinct_rows, of near or
/// far operands.
template <class T, class Device>
void add_rows(const device_queue<Device>& q, const scalar<T>* from, std::span<const local_index> rows,
              matrix_view<T> to) {
  detail::run_by_list<Device>(q, rows, updates(to), from, [&](const device_queue<Device>& on) {
    scatter_add_distinct_rows(on, from, rows, to);
  });
}

/// Calls f(), a kernel of this name that addresses its operands where they are, far or near.
template <class Device, class F, class... X>
void in_place(const device_queue<Device>& q, const char* kernel, const F& f, const X&... x) {
  const std::array<operand, sizeof...(X)> operands{x...};
  if (auto* const runner = runner_of(q)) return runner->in_place(kernel, operands, f);
  f();
}

/// The kernels pack, unpack and copy, of near or far blocks.
template <class T, class Device>
void pack_block(const device_queue<Device>& q, input_view<T> from, T* to) {
  in_place(
      q, "block", [&] { pack(q, from, to); }, updates(from));
}
template <class T, class Device>
void unpack_block(const device_queue<Device>& q, const scalar<T>* from, matrix_view<T> to) {
  in_place(
      q, "block", [&] { unpack(q, from, to); }, updates(to));
}
template <class T, class Device>
void copy_block(const device_queue<Device>& q, input_view<T> from, matrix_view<T> to) {
  in_place(
      q, "block", [&] { copy(q, from, to); }, updates(to));
}

}  // namespace partita::local
