// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A claim of a paper, and what came of it here.

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "partita/base/index.hpp"

namespace bench::claims {

using partita::global_index;

enum class verdict { pass, fail, needs_a_card };
constexpr std::string_view name_of(verdict v) {
  constexpr std::string_view names[] = {"pass", "fail", "needs a card"};
  return names[static_cast<std::size_t>(v)];
}

/// A reason for each that does not pass.
struct outcome {
  claims::verdict verdict = verdict::pass;
  std::string ours, reason = {};
};

struct claim {
  std::string_view paper, number;    ///< as in docs/claims.md
  std::string_view what, published;  ///< in a few words; the paper's figure
  outcome (*run)();
  /// Why it is known to fail; a failure without is an error of the program.
  std::string_view shortfall = {};
};

/// As printf.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

/// What a claim says in several parts: it passes if all hold.
class parts {
 public:
  void require(bool holds, const std::string& otherwise) {
    if (!holds && first_.empty()) first_ = otherwise;
  }
  /// Counts that must be the same.
  void equal(global_index counted, global_index expected, const std::string& of) {
    require(counted == expected, text("%s: %lld instead of %lld", of.c_str(), static_cast<long long>(counted),
                                      static_cast<long long>(expected)));
  }
  /// Figures that may differ by a share of the second.
  void near(double found, double expected, double share, const std::string& of) {
    require(std::abs(found - expected) <= share * std::abs(expected),
            text("%s: %.4g instead of %.4g", of.c_str(), found, expected));
  }
  /// What `run` throws, and "" where it does not.
  template <class Run>
  static std::string error_of(Run run) {
    try {
      run();
      return "";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  outcome result(std::string ours) const {
    return {first_.empty() ? verdict::pass : verdict::fail, std::move(ours), first_};
  }

 private:
  std::string first_;
};

/// A claim that only a GPU can show.
inline outcome on_a_card(std::string why) { return {verdict::needs_a_card, "not measured", std::move(why)}; }

std::vector<claim> of_cagnet();
std::vector<claim> of_gnnpipe();
std::vector<claim> of_neutrontp();
std::vector<claim> of_leapgnn();

}  // namespace bench::claims
