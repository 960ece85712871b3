// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Command lines of the programs: what options may be, how they are shown, and where policies, meshes and
/// ranks are named.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "partita/io/dataset_type.hpp"

/// A check whose message is a sentence.
template <class Accept>
CLI::Validator number_that(const std::string& is, Accept accept) {
  return CLI::Validator(
      [=](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return *end == 0 && !text.empty() && accept(value) ? std::string() : text + " is not " + is;
      },
      "");
}

/// The same of digits alone, from `least` to less than `bound`.
inline CLI::Validator whole_number(const std::string& is, double least, double bound) {
  return CLI::Validator(
      [=](const std::string& text) {
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
        const double value = digits ? std::strtod(text.c_str(), nullptr) : -1;
        return value >= least && value < bound ? std::string() : text + " is not " + is;
      },
      "");
}

inline const CLI::Validator count = whole_number("a positive whole number below a billion", 1, 1e9);
inline const CLI::Validator positive =
    number_that("a positive number", [](double v) { return v > 0 && std::isfinite(v); });

/// The option of this long name, which is there. (CLI::App::get_option ends the program where an allocation
/// fails in it.)
template <class App>
auto* option_named(App& app, std::string_view name) {
  for (auto* const option : app.get_options())
    for (const std::string& own : option->get_lnames())
      if (name.ends_with(own) && name.size() == own.size() + 2) return option;
  throw CLI::OptionNotFound(std::string(name));
}
inline bool is_given(const CLI::App& app, std::string_view name) {
  return option_named(app, name)->count() > 0;
}

/// An option that takes one of these words.
CLI::Option* words(CLI::Option* option, const std::vector<std::string>& allowed);

/// --timeout, the limit of a wait for other ranks.
CLI::Option* add_timeout(CLI::App& app, std::optional<double>& seconds);

/// --unpack-limit, the bytes to which a packed file may be unpacked.
CLI::Option* add_unpack_limit(CLI::App& app, std::optional<std::size_t>& limit);

/// --task, what labels.npy holds, or links.
CLI::Option* add_task(CLI::App& app, std::string& task);

/// The task of that name, as labels are read for it; none for no name, and for links.
std::optional<partita::io::task> task_named(const std::string& name);

/// --policy, --ranks and --mesh, for one policy on one mesh.
void add_arrangement(CLI::App& app, std::string& policy, std::optional<int>& ranks,
                     std::optional<std::string>& mesh);

/// Of a size such as "2G": bytes, or with K, M, G or T, each also with B or iB, multiples of 1024; from 1 to
/// less than 2^63. Throws usage_error that names the option.
double bytes_of(const std::string& option, const std::string& text);

/// The names of all policies.
std::vector<std::string> policy_names();

/// Defaults stand at the end of what an option means.
void show_defaults(CLI::App& app);

/// Reads the words; prints the help or the version and exits where that is asked for. Throws usage_error.
void parse(CLI::App& app, int argc, char** argv);
