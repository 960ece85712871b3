// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a benchmark of a device is asked for.

#include <algorithm>
#include <string>
#include <vector>

#include "command.hpp"

namespace bench {

/// The words of a list with commas.
inline std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words{""};
  for (const char c : list) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

/// Options of the form `--name VALUE`, each with what it is unless given.
class gpu_command {
 public:
  struct option {
    std::string name, value;
  };

  /// Throws error for what is no option of `known`, and for an option without a value.
  gpu_command(int argc, char** argv, std::vector<option> known) : options_(std::move(known)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      const auto found = std::find_if(options_.begin(), options_.end(),
                                      [&](const option& o) { return "--" + o.name == name; });
      if (found == options_.end())
        throw partita::error("there is no option " + name + "; the options are" + names());
      if (i + 1 == argc) throw partita::error(name + " needs a value");
      found->value = argv[i + 1];
    }
  }

  const std::string& text(const std::string& name) const {
    return std::find_if(options_.begin(), options_.end(), [&](const option& o) { return o.name == name; })
        ->value;
  }
  int number(const std::string& name, int low, int high) const {
    return parse_number(name, text(name), low, high);
  }
  /// The words of a list, each one of `allowed`. Throws error for one that is not.
  std::vector<std::string> choice(const std::string& name, const std::vector<std::string>& allowed) const {
    std::string known;
    for (const std::string& word : allowed) known += " " + word;
    const std::vector<std::string> chosen = words_of(text(name));
    for (const std::string& word : chosen)
      if (std::find(allowed.begin(), allowed.end(), word) == allowed.end())
        throw partita::error("--" + name + " has no '" + word + "'; there are" + known);
    return chosen;
  }

 private:
  std::string names() const {
    std::string all;
    for (const option& o : options_) all += " --" + o.name;
    return all;
  }

  std::vector<option> options_;
};

}  // namespace bench
