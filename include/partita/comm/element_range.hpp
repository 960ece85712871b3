// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What communicators send and receive: contiguous ranges of elements, owned by whoever calls.

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include "partita/comm/operation.hpp"

namespace partita::comm {

/// A type whose values travel as they lie in memory.
template <class T>
concept transferable = requires {
  element_type_of<T>::value;
};

namespace detail {

template <class R>
using data_of = decltype(std::data(std::declval<R&>()));

}  // namespace detail

/// The type of a range's elements, without const.
template <class R>
using element_of = std::remove_cv_t<std::remove_pointer_t<detail::data_of<R>>>;

/// Elements in one piece of memory: a vector, an array, a span, a buffer, const or not.
template <class R>
concept element_range = requires(R& r) {
  { std::size(r) } -> std::convertible_to<std::size_t>;
  requires transferable<element_of<R>>;
};

/// A range whose elements outlive the call: an object with a name, or a span.
template <class R>
concept lasting_range = element_range<R> &&
    (std::is_lvalue_reference_v<R> || std::ranges::enable_borrowed_range<std::remove_cvref_t<R>>);

/// A range that an operation may write.
template <class R>
concept writable_range =
    lasting_range<R> && std::same_as<detail::data_of<R>, std::add_pointer_t<element_of<R>>>;
template <class R, class T>
concept writable_range_of = writable_range<R> && std::same_as<element_of<R>, T>;
/// One of the elements that Other has.
template <class R, class Other>
concept writable_like = writable_range_of<R, element_of<Other>>;

/// A number of elements for each rank, in rank order.
template <class R>
concept count_range = element_range<R> && std::same_as<element_of<R>, global_index>;
template <class R>
concept lasting_count_range = count_range<R> && lasting_range<R>;

namespace detail {

template <class R>
std::span<const element_of<R>> input_of(const R& r) {
  return {std::data(r), static_cast<std::size_t>(std::size(r))};
}
template <class R>
std::span<element_of<R>> output_of(R& r) {
  return {std::data(r), static_cast<std::size_t>(std::size(r))};
}

}  // namespace detail

}  // namespace partita::comm
