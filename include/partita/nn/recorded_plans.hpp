// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the plans of a layer receive.

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "partita/comm/ledger.hpp"
#include "partita/partition/blocking.hpp"

namespace partita::nn {

/// How often a plan runs in one forward and in one backward pass of a steady epoch.
struct plan_uses {
  global_index forward = 1, backward = 1;
};

/// The plans that a builder gave a layer, and the records of the layers inside it. Local.
class recorded_plans {
 public:
  /// Adds a plan, with predicted_forward() and predicted(), in both directions, or with predicted() only, in
  /// each. Null receives nothing.
  template <class Plan>
  void add(std::shared_ptr<Plan> plan, plan_uses uses) {
    if (!plan) return;
    plans_.push_back([plan, uses](bool backward) {
      const global_index back = backward ? uses.backward : 0;
      if constexpr (requires { plan->predicted_forward(); }) {
        const traffic forward = plan->predicted_forward();
        return uses.forward * forward + back * (plan->predicted() + -1 * forward);
      } else {
        return (uses.forward + back) * plan->predicted();
      }
    });
  }
  /// `inner` is the record of a layer inside this one, and of no other. `again`: its forward runs twice.
  static void put(const std::shared_ptr<recorded_plans>& inner, const std::shared_ptr<recorded_plans>& outer,
                  bool again = false) {
    if (const auto before = inner->outer_.lock())
      std::erase_if(before->parts_, [&](const part& p) { return p.plans == inner; });
    inner->outer_ = outer;
    outer->parts_.push_back({inner, again});
  }

  /// What this rank receives in one forward pass and, if asked for, in one backward pass.
  traffic predicted(bool backward) const {
    traffic v;
    for (const auto& of_plan : plans_) v += of_plan(backward);
    for (const part& p : parts_) {
      v += p.plans->predicted(backward);
      if (backward && p.again) v += p.plans->predicted(false);
    }
    return v;
  }

  /// The rows of what the layer computes, as it says or as its last plan does; none where they are those of
  /// its input.
  std::optional<blocking> rows() const {
    if (rows_) return rows_;
    std::optional<blocking> found;
    for (const part& p : parts_)
      if (const auto of_part = p.plans->rows()) found = of_part;
    return found;
  }
  void set_rows(const blocking& rows) { rows_ = rows; }

 private:
  struct part {
    std::shared_ptr<recorded_plans> plans;
    bool again;
  };

  std::vector<std::function<traffic(bool)>> plans_;
  std::vector<part> parts_;
  std::weak_ptr<recorded_plans> outer_;
  std::optional<blocking> rows_;
};

}  // namespace partita::nn
