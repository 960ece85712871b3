// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Command lines of benchmarks, with CLI11.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "partita/base/error.hpp"

namespace bench {

/// An integer from `low` to `high`.
inline CLI::Option* add_number(CLI::App& app, const std::string& name, int& value, int low, int high,
                               const std::string& what) {
  return app.add_option(name, value, what)
      ->check(CLI::Range(low, high))
      ->option_text("N")
      ->capture_default_str();
}

/// One word of `allowed`, or a comma-separated list if `Value` is a vector.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const std::vector<std::string>& allowed, const std::string& what) {
  return app.add_option(name, value, what)
      ->delimiter(',')
      ->check(CLI::IsMember(allowed))
      ->option_text(CLI::detail::join(allowed, "|"))
      ->capture_default_str();
}

/// Prints the help and exits if requested. Throws error.
inline void parse(CLI::App& app, int argc, char** argv) {
  for (CLI::Option* const option : app.get_options())
    if (!option->get_default_str().empty())
      option->description(option->get_description() + " (default " + option->get_default_str() + ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& e) {
    throw partita::error(e.what());
  }
}

}  // namespace bench
