// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether what is trained still consists of finite numbers.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partita/algebra/finite.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/train/options.hpp"
#include "partita/train/state_dict.hpp"

namespace partita::nn::detail {

/// After a step: what of these parameters is not finite here, such as "the gradient of layer 1 weight"; empty
/// where all is. A gradient that is not finite leaves its trace in the second moment or the value, and one of
/// an embedding in the gradients of the layer that reads it. Local.
template <class T, class Device>
std::string not_finite_in(parameters<T, Device>& set, nn::optimizer<T, Device>& optimizer) {
  if (algebra::are_finite(set.values(), optimizer.state_of(set).second_moment)) return {};
  for (auto& p : set.list())
    if (!algebra::is_finite(p.gradient())) return "the gradient of " + p.name();
  for (auto& p : set.list())
    if (!algebra::is_finite(p.value())) return "the parameter " + p.name();
  if (algebra::is_finite(optimizer.state_of(set).second_moment)) return {};
  return "the optimiser's mean of squared gradients";
}

/// Makes `report` say, on every rank, what the first rank has found that found something, and how long the
/// slowest one took. Collective. What travels: an all-reduce of one element; a sentence more where something
/// was found.
inline void report_step(const communicator& world, double seconds, std::string not_finite,
                        epoch_report& report) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  report.seconds = world.all_reduce(not_finite.empty() ? seconds : infinity, reduction::max);
  if (report.seconds < infinity) return;
  report.seconds = seconds;
  const global_index here = not_finite.empty() ? world.size() : world.rank();
  const auto first = static_cast<int>(-world.all_reduce(-here, reduction::max));
  std::vector<std::uint8_t> text(not_finite.begin(), not_finite.end());
  text.resize(static_cast<std::size_t>(world.broadcast(std::ssize(text), first)));
  world.broadcast(text, first);
  report.not_finite.assign(text.begin(), text.end());
}

/// Throws error, which says what was not finite in an epoch.
inline void require_finite(const epoch_report& report, const std::string& name,
                           const training_options& options) {
  if (!std::isfinite(report.loss))
    base::throw_error<error>({name, ": the loss is not finite in epoch ", report.epoch,
                              report.epoch > 1 ? "; a lower learning rate may help" : ""});
  if (!report.not_finite.empty())
    base::throw_error<error>(
        {name, ": ", report.not_finite, " is not finite in epoch ", report.epoch,
         "; features or weights of edges may be too large or too small for this precision, "
         "or the learning rate too high"});
  if (options.patience > 0 && report.epoch % options.evaluate_every == 0 &&
      std::isnan(report.validation_accuracy))
    base::throw_error<input_error>(
        {name, ": patience needs a score of the validation set, and epoch ", report.epoch, " has none"});
}

/// Throws input_error that names the first of these values that is not finite.
template <class T>
void require_finite(std::span<const T> values, std::string_view file, std::string_view of) {
  if (!algebra::all_finite(values))
    base::throw_error<input_error>({file, ": ", of, " has a value that is not a finite number"});
}

}  // namespace partita::nn::detail
