#pragma once
/// A layout says which mesh axes cut the rows of a matrix and which cut its columns; an axis in neither list
/// replicates.
///
/// On a mesh of 3 x 2 x 1 with `layout<axes<axis::row>, axes<axis::col>>`, a matrix lies like this (rank
/// (row, col)):
///
///            columns 0..3   columns 4..6
///   rows 0..2   (0,0)          (0,1)
///   rows 3..4   (1,0)          (1,1)
///   rows 5..6   (2,0)          (2,1)

#include "partita/partition/axis.hpp"

namespace partita {

/// The axes that cut rows and columns, as a value; nesting fixes their order.
struct cut {
  axis_set rows;
  axis_set cols;

  constexpr axis_set used() const { return rows | cols; }
  friend constexpr bool operator==(cut, cut) = default;
};

template <class Axes>
constexpr bool nests_as(nesting order) {
  std::size_t found = 0;
  auto next = Axes::list.begin();
  for (axis a : order_of(order))
    if (next != Axes::list.end() && *next == a) ++next, ++found;
  return found == Axes::count;
}

/// Rows and Cols are `axes<...>`, outermost first.
template <class Rows, class Cols>
struct layout {
  static_assert(nests_as<Rows>(nesting::rows), "the row axes of a layout nest in the order row, depth, col");
  static_assert(nests_as<Cols>(nesting::cols),
                "the column axes of a layout nest in the order col, depth, row");
  static_assert((Rows::set & Cols::set).empty(),
                "an axis cuts the rows of a layout or its columns, not both");

  static constexpr cut value{Rows::set, Cols::set};
};

namespace detail {

template <axis_set S, nesting N, class Done = axes<>, std::size_t At = 0>
struct axes_from_set;
template <axis_set S, nesting N, axis... Done, std::size_t At>
requires(At < 3 && S.contains(order_of(N)[At])) struct axes_from_set<S, N, axes<Done...>, At>
    : axes_from_set<S, N, axes<Done..., order_of(N)[At]>, At + 1> {
};
template <axis_set S, nesting N, axis... Done, std::size_t At>
requires(At < 3 && !S.contains(order_of(N)[At])) struct axes_from_set<S, N, axes<Done...>, At>
    : axes_from_set<S, N, axes<Done...>, At + 1> {
};
template <axis_set S, nesting N, axis... Done>
struct axes_from_set<S, N, axes<Done...>, 3> {
  using type = axes<Done...>;
};

}  // namespace detail

/// The layout type of a cut.
template <cut C>
using layout_of = layout<typename detail::axes_from_set<C.rows, nesting::rows>::type,
                         typename detail::axes_from_set<C.cols, nesting::cols>::type>;

/// Rows cut by every axis, full width: where the neural-network part works.
using vertex_rows = layout<axes<axis::row, axis::depth, axis::col>, axes<>>;
/// Every rank has everything.
using replicated = layout<axes<>, axes<>>;

/// Layout's rows cut also by the axes that cut its columns, full width: where a product with a replicated
/// weight is local.
template <class Layout>
using full_width = layout_of<cut{Layout::value.rows | Layout::value.cols, {}}>;

}  // namespace partita
