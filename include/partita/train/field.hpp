// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What an option of training is: a row of the table in train/fields.hpp.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "partita/train/options.hpp"

namespace partita::nn {

/// Where the value of a field is; std::uint8_t stands for an enumeration, with its words in field::form.
using field_value = std::variant<int*, global_index*, std::uint64_t*, double*, bool*, std::uint8_t*,
                                 std::string*, std::vector<int>*, std::vector<global_index>*,
                                 std::vector<double>*, std::vector<sampling::fanout>*>;

/// The numbers that a command line may give.
struct field_range {
  std::string_view is = {};  ///< as in "-1 is not a positive number"
  double least = 0, most = 0;
  bool or_none = false;  ///< the default means none: help and records leave it out
};

enum class field_group : std::uint8_t {
  none,  ///< not on the command line of `train`
  model,
  training,
  features,
  products,
  batches,
  stages,
  links
};

/// Which files keep a field: checkpoints (`if_given`: unless it has its default), or saved models as well.
enum class field_kept : std::uint8_t { nowhere, by_checkpoints_if_given, by_checkpoints, by_models };

/// When a field has an effect.
struct field_mode {
  std::string_view otherwise = {};  ///< the end of a sentence, such as " needs --batch"
  bool (*on)(const training_options&) = [](const training_options&) { return true; };
  const field_mode* within = nullptr;

  /// Why it has no effect, as above; empty if it has one.
  constexpr std::string_view refusal(const training_options& o) const {
    const std::string_view outer = within == nullptr ? std::string_view() : within->refusal(o);
    return !outer.empty() || on(o) ? outer : otherwise;
  }
};

/// An option.
struct field {
  std::string_view name;  ///< on the command line after --; in saved models with _ for -
  field_group group = field_group::none;
  field_value (*of)(training_options&) = nullptr;
  std::string_view form = {};  ///< of the value in help; for words, all of them, separated by |
  field_range range = {};
  field_kept kept = field_kept::nowhere;
  field_mode mode = {};
  std::string_view help = {};

  bool has_words() const { return form.find('|') != form.npos && range.is.empty(); }
  /// Whether a bool is true unless the option is given.
  bool switches_off() const { return name.starts_with("no-"); }
  /// The k-th of the words.
  std::string_view word(std::size_t k) const {
    std::string_view rest = form;
    for (; k > 0; --k) rest.remove_prefix(rest.find('|') + 1);
    return rest.substr(0, rest.find('|'));
  }
  /// The index of the word; the number of words if it is none of them.
  std::size_t number_of(std::string_view text) const {
    const auto count = static_cast<std::size_t>(std::ranges::count(form, '|')) + 1;
    for (std::size_t k = 0; k < count; ++k)
      if (word(k) == text) return k;
    return count;
  }
};

namespace detail {

template <class V>
field_value place_of(V& value) {
  if constexpr (std::is_enum_v<V>)
    return reinterpret_cast<std::uint8_t*>(&value);
  else
    return &value;
}
template <auto Member>
field_value at(training_options& o) {
  if constexpr (std::is_invocable_v<decltype(Member), mini_batch_options&>)
    return place_of(o.mini_batch.*Member);
  else if constexpr (std::is_invocable_v<decltype(Member), pipeline_options&>)
    return place_of(o.pipeline.*Member);
  else if constexpr (std::is_invocable_v<decltype(Member), link_options&>)
    return place_of(o.links.*Member);
  else if constexpr (std::is_invocable_v<decltype(Member), schedule&>)
    return place_of(o.schedule.*Member);
  else
    return place_of(o.*Member);
}

/// Whether the whole text is a finite number within the bounds; if so, stores it in `to`.
template <class N>
bool parse_number(std::string_view text, N& to, double least, double most = HUGE_VAL) {
  N value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = status == std::errc{} && end == text.data() + text.size() &&
                    std::isfinite(static_cast<double>(value)) && static_cast<double>(value) >= least &&
                    static_cast<double>(value) <= most;
  if (good) to = value;
  return good;
}

/// Calls read(piece) for each piece between separators until one is refused; returns whether all were taken.
template <class Read>
bool read_pieces(std::string_view text, char separator, const Read& read) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (!read(text.substr(0, end))) return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace detail

}  // namespace partita::nn
