// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How long kernels take, from measurements of others of their kind.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/memory/observed_passes.hpp"

namespace partita::memory {

/// What a kernel is assumed to take on hardware that nobody has measured, in seconds:
///
///     latency + max(bytes / bandwidth, work / multiplications)
struct assumed_rates {
  double latency = 0, bandwidth = 1e18, multiplications = 1e18;  ///< the last two in a second

  double operator()(const kernel_call& c) const {
    return latency + std::max(c.bytes / bandwidth, c.work / multiplications);
  }
};

/// Seconds of calls that were measured, on one thread, or of which a model is assumed.
class kernel_rates {
 public:
  using model = std::function<double(const kernel_call&)>;

  kernel_rates() = default;
  /// The seconds of kernels of which nothing is measured, nor of others of their family.
  explicit kernel_rates(model assumed) : assumed_(std::move(assumed)) {}

  /// Calls that are alike, and what one of them takes.
  struct sample {
    kernel_call call;  ///< without its name
    double seconds = 0;
    int times = 1;
  };

  /// Adds a measurement to those of the same kernel whose sizes are within a factor of 2^(1/4), of which the
  /// mean is kept. Calls that touch nothing do not count.
  void add(const kernel_call& call, double seconds, int times = 1) {
    if (call.bytes <= 0) return;
    measured& all = find(call.kernel);
    const place at = place_of(call);
    for (std::size_t i = 0; i < all.places.size(); ++i)
      if (distance(all.places[i], at, [](double x) { return std::round(4 * x); }) == 0) {
        sample& s = all.samples[i];
        // Calls of other sizes: their mean rate.
        const double rate = (s.seconds / units(s.call) * s.times + seconds / units(call) * times);
        s.times += times;
        s.seconds = rate / s.times * units(s.call);
        return;
      }
    all.places.push_back(at);
    all.samples.push_back({call, seconds, times});
    all.samples.back().call.kernel = {};
  }

  /// The seconds of a call: those of a measurement of the same sizes; otherwise the mean of the nearest
  /// ones of this kernel, by their logarithms, each for what it touches or multiplies. Of a kernel "rows: f"
  /// that was not measured, others of "rows: " are the nearest; where there are none, those that are assumed.
  /// Throws input_error without an assumption.
  double seconds(const kernel_call& call) const {
    if (call.bytes <= 0) return 0;
    const place at = place_of(call);
    std::array<std::pair<double, const sample*>, 4> nearest;
    nearest.fill({INFINITY, nullptr});
    const auto look_at = [&](const measured& all) {
      for (std::size_t i = 0; i < all.places.size(); ++i) {
        std::pair now(distance(all.places[i], at), &all.samples[i]);
        for (auto& n : nearest)
          if (now.first < n.first) std::swap(now, n);
      }
    };
    if (const auto found = kernels_.find(call.kernel); found != kernels_.end())
      look_at(found->second);
    else
      for (const auto& [name, all] : kernels_)
        if (family(name) == family(call.kernel)) look_at(all);
    if (nearest.front().second == nullptr && assumed_) return assumed_(call);
    if (nearest.front().second == nullptr)
      base::throw_error<input_error>(
          {"there is no measurement of the kernel \"", std::string(call.kernel), "\""});
    if (nearest.front().first == 0) return nearest.front().second->seconds;
    double weights = 0, sum = 0;
    for (const auto& [d, s] : nearest) {
      if (s == nullptr) break;
      const double weight = 1 / (d * d + 1e-4);
      weights += weight;
      sum += weight * std::log(s->seconds / units(s->call));
    }
    return std::exp(sum / weights) * units(call);
  }

  /// f(name, sample) for each.
  template <class F>
  void for_each(const F& f) const {
    for (const auto& [name, all] : kernels_)
      for (const sample& s : all.samples) f(name, s);
  }
  bool empty() const { return kernels_.empty() && !assumed_; }

 private:
  /// Logarithms of sizes.
  using place = std::array<double, 5>;
  struct measured {
    std::vector<place> places;
    std::vector<sample> samples;
  };

  static std::string_view family(std::string_view name) { return name.substr(0, name.find(':')); }
  static double units(const kernel_call& c) { return c.work > 0 ? c.work : c.bytes; }
  static place place_of(const kernel_call& c) {
    const double rows = std::max(c.rows, 1.0);
    return {std::log2(rows), std::log2(1 + c.row_bytes), std::log2(1 + c.bytes / rows),
            std::log2(1 + std::max(c.entries, c.work) / rows), std::log2(1 + c.table_bytes)};
  }
  /// Squared. How many rows there are, and how large what is gathered is, counts less than what a row needs.
  template <class Round = std::identity>
  static double distance(const place& a, const place& b, const Round& round = {}) {
    constexpr place weights{0.1, 1, 1, 1, 0.2};
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k)
      sum += weights[k] * (round(a[k]) - round(b[k])) * (round(a[k]) - round(b[k]));
    return sum;
  }
  measured& find(std::string_view kernel) {
    const auto found = kernels_.find(kernel);
    return found != kernels_.end() ? found->second : kernels_[std::string(kernel)];
  }

  std::map<std::string, measured, std::less<>> kernels_;
  model assumed_;
};

}  // namespace partita::memory
