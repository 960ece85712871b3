// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs a golden case under a policy and says how far logits, loss and gradients are off.

#include <cmath>

#include "case.hpp"
#include "partita/algebra/loss.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/models.hpp"

template <class T>
double relative_error(std::span<const T> found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = std::abs(static_cast<double>(found[i]) - expected[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

/// Gives the model the parameters of a case.
template <class T, class Device>
void take_golden_values(partita::nn::model<T, Device>& net, const golden_case& c) {
  using namespace partita;
  auto& list = net.parameters().list();
  if (list.size() != c.values.size())
    throw input_error(c.folder.string() + ": has " + std::to_string(c.values.size()) +
                      " parameters, the model has " + std::to_string(list.size()));
  for (auto& parameter : list) {
    const auto& given = c.values.at(parameter.name());
    const std::span<T> value = parameter.value().values();
    if (given.size() != value.size())
      throw input_error(c.folder.string() + ": parameter " + parameter.name() + " has " +
                        std::to_string(given.size()) + " entries, not " + std::to_string(value.size()));
    const std::vector<T> converted(given.begin(), given.end());
    copy(net.parameters().mesh().queue(), std::span<const T>(converted), value);
  }
}

/// The model of a case, with its parameters. Every rank must call.
template <class T, class Device>
partita::nn::model<T, Device> make_golden_model(const partita::mesh<Device>& m, const golden_case& c,
                                                const partita::nn::training_options& options,
                                                const partita::policy& p) {
  auto net = partita::nn::make_model<T>(m, c.graph, options, p);
  take_golden_values(net, c);
  return net;
}

template <class T, class Device>
double golden_loss(const golden_case& c, const partita::dense<T, partita::vertex_rows, Device>& logits,
                   partita::dense<T, partita::vertex_rows, Device>& gradient) {
  using namespace partita;
  const auto& m = logits.mesh();
  const algebra::vertex_labels<Device> labels(m, logits.row_blocking(), [&](global_index v) {
    return !c.counts(v) ? -1 : c.several_labels ? 0 : c.labels[static_cast<std::size_t>(v)];
  });
  if (!c.several_labels) return algebra::cross_entropy(logits, labels, gradient);
  const auto targets = generate<vertex_rows, T>(m, logits.shape(), [&](global_index v, global_index k) {
    return c.counts(v) ? c.labels[static_cast<std::size_t>(v * c.classes() + k)] : -1;
  });
  return algebra::logistic_loss(logits, targets, labels.counted(), gradient);
}

/// Forward, loss and backward of a model with the parameters of a case. Every rank must call; the errors are
/// the same on every rank.
template <class T, class Device>
golden_errors compare_golden(partita::nn::model<T, Device>& net, const golden_case& c) {
  using namespace partita;
  const auto& m = net.parameters().mesh();
  const auto x =
      generate<vertex_rows, T>(m, {c.x.shape[0], c.x.shape[1]}, [&](global_index i, global_index j) {
        return c.x.values[static_cast<std::size_t>(i * c.x.shape[1] + j)];
      });  // (n, f)
  const auto& logits = net.forward(x, {});
  dense<T, vertex_rows, Device> gradient(m, logits.shape());
  const double loss = golden_loss(c, logits, gradient);
  net.backward(gradient);

  golden_errors errors;
  const std::vector<T> all = collect(logits);
  errors.parts.emplace_back("logits", relative_error(std::span<const T>(all), c.logits.values));
  errors.parts.emplace_back("loss", std::abs(loss - c.loss) / std::abs(c.loss));
  for (auto& parameter : net.parameters().list()) {
    const std::span<const T> gradient_here = parameter.gradient().values();
    std::vector<T> found(gradient_here.size());
    copy(m.queue(), gradient_here, std::span<T>(found));
    errors.parts.emplace_back(parameter.name(),
                              relative_error(std::span<const T>(found), c.gradients.at(parameter.name())));
  }
  return errors;
}
/// The same of the model of a case.
template <class T, class Device>
golden_errors compare_golden(const partita::mesh<Device>& m, const golden_case& c,
                             const partita::nn::training_options& options, const partita::policy& p) {
  auto net = make_golden_model<T>(m, c, options, p);
  return compare_golden(net, c);
}
