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
    plans_.push_back({[plan, n = uses.forward] { return n == 0 ? traffic{} : n * forward_of(*plan); },
                      [plan, n = uses.backward] { return n == 0 ? traffic{} : n * backward_of(*plan); }});
  }
  /// `inner` is the record of a layer inside this one, and of no other. `again`: its forward runs twice.
  static void put(const std::shared_ptr<recorded_plans>& inner, const std::shared_ptr<recorded_plans>& outer,
                  bool again = false) {
    if (const auto before = inner->outer_.lock())
      std::erase_if(before->parts_, [&](const part& p) { return p.plans == inner; });
    inner->outer_ = outer;
    outer->parts_.push_back({inner, again});
  }

  /// What this rank receives in one forward pass, and in a forward and a backward pass.
  traffic predicted_forward() const {
    traffic v;
    for (const plan& p : plans_) v += p.forward();
    for (const part& p : parts_) v += p.plans->predicted_forward();
    return v;
  }
  traffic predicted() const {
    traffic v;
    for (const plan& p : plans_) v += p.forward() + p.backward();
    for (const part& p : parts_) {
      v += p.plans->predicted();
      if (p.again) v += p.plans->predicted_forward();
    }
    return v;
  }

  /// The rows of what the layer's plans compute; none where they are those of its input.
  std::optional<blocking> rows() const {
    std::optional<blocking> found = rows_;
    for (const part& p : parts_)
      if (const auto of_part = p.plans->rows()) found = of_part;
    return found;
  }
  void set_rows(const blocking& rows) { rows_ = rows; }

 private:
  struct plan {
    std::function<traffic()> forward, backward;
  };
  struct part {
    std::shared_ptr<recorded_plans> plans;
    bool again;
  };

  template <class Plan>
  static traffic forward_of(const Plan& p) {
    if constexpr (requires { p.predicted_forward(); })
      return p.predicted_forward();
    else
      return p.predicted();
  }
  template <class Plan>
  static traffic backward_of(const Plan& p) {
    traffic both = p.predicted();
    if constexpr (requires { p.predicted_forward(); }) both += -1 * p.predicted_forward();
    return both;
  }

  std::vector<plan> plans_;
  std::vector<part> parts_;
  std::weak_ptr<recorded_plans> outer_;
  std::optional<blocking> rows_;
};

}  // namespace partita::nn
