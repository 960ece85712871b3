// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Concepts for communication buffers: contiguous ranges owned by the caller.

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include "partita/comm/operation.hpp"

namespace partita::comm {

/// An element type that can be sent as raw bytes.
template <class T>
concept transferable = requires {
  element_type_of<T>::value;
};

namespace detail {

template <class R>
using data_of = decltype(std::data(std::declval<R&>()));

}  // namespace detail

/// Element type of a range, without const.
template <class R>
using element_of = std::remove_cv_t<std::remove_pointer_t<detail::data_of<R>>>;

/// A contiguous range of transferable elements: vector, array, span or buffer, const or not.
template <class R>
concept element_range = requires(R& r) {
  { std::size(r) } -> std::convertible_to<std::size_t>;
  requires transferable<element_of<R>>;
};

/// A range whose elements outlive the call: an lvalue or a borrowed range such as std::span.
template <class R>
concept lasting_range = element_range<R> &&
    (std::is_lvalue_reference_v<R> || std::ranges::enable_borrowed_range<std::remove_cvref_t<R>>);

/// A range that an operation may write to.
template <class R>
concept writable_range =
    lasting_range<R> && std::same_as<detail::data_of<R>, std::add_pointer_t<element_of<R>>>;
template <class R, class T>
concept writable_range_of = writable_range<R> && std::same_as<element_of<R>, T>;
/// A writable range with the element type of Other.
template <class R, class Other>
concept writable_like = writable_range_of<R, element_of<Other>>;

/// One element count per rank, in rank order.
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
