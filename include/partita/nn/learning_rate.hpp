// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Learning rates by epoch, and when to stop. Local; no communication: every rank gets the same losses and
/// scores, and decides the same.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>

#include "partita/base/error.hpp"

namespace partita::nn {

/// How the learning rate r_e of epoch e = 0, 1, ... follows from the first one, r. After a warm-up of W
/// epochs, with r_e = r (e + 1) / W, epochs count from W on.
///
/// - `constant`: r.
/// - `step`: r factor^(e / period), rounded down.
/// - `cosine`: least + (r - least) (1 + cos(pi min(e, period) / period)) / 2. Source: Loshchilov, Hutter
/// (ICLR 2017),
///   equation 5, without restarts.
/// - `plateau`: times `factor`, but at least `least`, whenever the loss has been no less than 0.9999 of the
/// least one
///   before for more than `period` epochs.
enum class rate_curve : std::uint8_t { constant, step, cosine, plateau };

/// `period` and `warmup` in epochs.
struct schedule {
  rate_curve curve = rate_curve::constant;
  int period = 10;
  double factor = 0.1;
  double least = 0;
  int warmup = 0;
  /// One of your own, in the place of the curve: what r is multiplied with in epoch e, after the warm-up.
  std::function<double(int)> own = {};
};

/// The learning rate of the epoch to come.
class learning_rate {
 public:
  /// What has to be kept of it in a checkpoint.
  struct state {
    int epoch = 0;
    double least_loss = std::numeric_limits<double>::infinity();
    int since = 0;          ///< epochs since the loss was least
    double lowered_by = 1;  ///< the factor that plateaus have led to
  };

  /// Throws error unless the rate is finite and not negative, the warm-up not negative, and, where the curve
  /// uses them, the period positive (for plateau: not negative), the factor in (0, 1) and `least` in [0,
  /// rate].
  explicit learning_rate(double rate, const schedule& how = {}) : rate_(rate), how_(how) {
    const auto refuse = [](const char* what, auto value, const char* must) {
      base::throw_error<error>(
          {"a schedule of learning rates has ", what, " ", std::to_string(value), ", which must be ", must});
    };
    if (!(rate >= 0 && std::isfinite(rate))) refuse("a first rate of", rate, "finite and not negative");
    if (how.warmup < 0) refuse("a warm-up of", how.warmup, "0 or more epochs");
    if (how.curve == rate_curve::constant) return;
    if (how.period < (how.curve == rate_curve::plateau ? 0 : 1))
      refuse("a period of", how.period,
             how.curve == rate_curve::plateau ? "0 or more epochs" : "1 or more epochs");
    if (how.curve != rate_curve::cosine && !(how.factor > 0 && how.factor < 1))
      refuse("a factor of", how.factor, "between 0 and 1");
    if (!(how.least >= 0 && how.least <= rate))
      refuse("a least rate of", how.least, "between 0 and the first");
  }

  double now() const {
    if (now_.epoch < how_.warmup) return rate_ * (now_.epoch + 1) / how_.warmup;
    const int e = now_.epoch - how_.warmup;
    if (how_.own) return rate_ * how_.own(e);
    switch (how_.curve) {
      case rate_curve::step:
        return std::max(how_.least, rate_ * std::pow(how_.factor, e / how_.period));
      case rate_curve::cosine:
        return how_.least + (rate_ - how_.least) *
                                (1 + std::cos(std::numbers::pi * std::min(e, how_.period) / how_.period)) / 2;
      case rate_curve::plateau:
        return std::max(how_.least, rate_ * now_.lowered_by);
      default:
        return rate_;
    }
  }
  /// Goes on to the next epoch, after one with this loss.
  void end_epoch(double loss) {
    ++now_.epoch;
    if (loss < now_.least_loss * (1 - 1e-4)) {
      now_.least_loss = loss, now_.since = 0;
    } else if (++now_.since > how_.period) {
      now_.lowered_by *= how_.factor, now_.since = 0;
    }
  }

  const state& get() const { return now_; }
  void set(const state& s) { now_ = s; }

 private:
  double rate_;
  schedule how_;
  state now_;
};

/// Stops a run whose score has not risen for a number of epochs.
class early_stopping {
 public:
  /// Throws error unless patience is 1 or more.
  explicit early_stopping(int patience) : patience_(patience) {
    if (patience < 1)
      base::throw_error<error>(
          {"training stops early after 1 or more epochs without a better score, not ", patience});
  }

  /// Tells it the score of an epoch; whether it is better than all before. Not a number never is.
  bool improves(double score) {
    const bool better = score > best_;
    if (better) best_ = score;
    since_ = better ? 0 : since_ + 1;
    return better;
  }
  bool stops() const { return since_ >= patience_; }
  double best() const { return best_; }

 private:
  int patience_, since_ = 0;
  double best_ = -std::numeric_limits<double>::infinity();
};

}  // namespace partita::nn
