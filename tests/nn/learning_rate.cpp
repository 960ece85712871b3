// SPDX-License-Identifier: Apache-2.0
// Learning rates by epoch beside those of torch.optim.lr_scheduler, and when a run stops.
#include "partita/nn/learning_rate.hpp"

#include <vector>

#include "support/layers.hpp"

namespace test_learning_rate {

using namespace test_support;
using nn::rate_curve;

/// The rates of the epochs that have these losses.
std::vector<double> rates(nn::learning_rate rate, const std::vector<double>& losses) {
  std::vector<double> found;
  for (const double loss : losses) found.push_back(rate.now()), rate.end_epoch(loss);
  return found;
}
void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) CHECK(found[k] == doctest::Approx(wanted[k]).epsilon(1e-12));
}

TEST_CASE("each curve, by hand") {
  const std::vector<double> six(6, 1);
  check_close(rates(nn::learning_rate(0.1), six), {0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  check_close(rates(nn::learning_rate(0.1, {.curve = rate_curve::step, .period = 2, .factor = 0.5}), six),
              {0.1, 0.1, 0.05, 0.05, 0.025, 0.025});
  check_close(rates(nn::learning_rate(0.1, {.curve = rate_curve::cosine, .period = 4, .least = 0.02}), six),
              {0.1, 0.06 + 0.04 * std::sqrt(0.5), 0.06, 0.06 - 0.04 * std::sqrt(0.5), 0.02, 0.02});
  check_close(rates(nn::learning_rate(0.1, {.warmup = 4}), six), {0.025, 0.05, 0.075, 0.1, 0.1, 0.1});
  check_close(
      rates(nn::learning_rate(0.1, {.curve = rate_curve::step, .period = 1, .factor = 0.5, .warmup = 2}),
            six),
      {0.05, 0.1, 0.1, 0.05, 0.025, 0.0125});
  check_close(
      rates(nn::learning_rate(0.1, {.warmup = 1, .own = [](int e) { return e < 2 ? 1.0 : 0.3; }}), six),
      {0.1, 0.1, 0.1, 0.03, 0.03, 0.03});
}

TEST_CASE("a plateau is more than `period` epochs without a loss below 0.9999 of the least one") {
  const nn::schedule how{.curve = rate_curve::plateau, .period = 1, .factor = 0.5, .least = 0.02};
  check_close(rates(nn::learning_rate(0.1, how), {3, 2, 2, 1.9999, 1.9, 1.9, 1.9, 1.9, 1.9, 1.9}),
              {0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.02});
}

TEST_CASE("a rate goes on where its state was taken") {
  const nn::schedule how{.curve = rate_curve::plateau, .period = 0, .factor = 0.5, .warmup = 1};
  nn::learning_rate one(0.1, how), two(0.1, how);
  for (const double loss : {3.0, 3.0, 2.0, 2.0}) one.end_epoch(loss);
  two.set(one.get());
  for (const double loss : {2.0, 1.0, 1.0}) {
    CHECK(one.now() == two.now());
    one.end_epoch(loss), two.end_epoch(loss);
  }
  CHECK(one.now() == two.now());
  CHECK(one.now() < 0.1);
}

TEST_CASE("schedules without a meaning are refused by what is wrong") {
  const auto says = [](double rate, const nn::schedule& how, const char* text) {
    CHECK_THROWS_WITH_AS(nn::learning_rate(rate, how), doctest::Contains(text), error);
  };
  says(-1, {}, "a first rate of -1");
  says(std::numeric_limits<double>::infinity(), {}, "finite");
  says(1, {.warmup = -1}, "a warm-up of -1");
  says(1, {.curve = rate_curve::step, .period = 0}, "a period of 0");
  says(1, {.curve = rate_curve::plateau, .period = -1}, "0 or more epochs");
  says(1, {.curve = rate_curve::step, .factor = 1}, "a factor of 1");
  says(1, {.curve = rate_curve::cosine, .least = 2}, "a least rate of 2");
  CHECK_THROWS_WITH_AS(nn::early_stopping(0), doctest::Contains("not 0"), error);
}

TEST_CASE("a run stops when the score has not risen for so many epochs") {
  nn::early_stopping stop(2);
  const double no_score = std::numeric_limits<double>::quiet_NaN();
  CHECK(stop.improves(0.5));
  CHECK(!stop.improves(0.5));
  CHECK(!stop.stops());
  CHECK(stop.improves(0.6));
  CHECK(!stop.improves(no_score));
  CHECK(!stop.stops());
  CHECK(!stop.improves(0.55));
  CHECK(stop.stops());
  CHECK(stop.best() == 0.6);
}

}  // namespace test_learning_rate
