// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross-entropy with a distribution over the classes as target: label smoothing, class weights, and labels
/// that are probabilities.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "partita/algebra/loss.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::algebra {

/// How labels become target distributions. `smoothing`: the share of a target that is spread over all
/// classes, in [0, 1). `class_weights`: one nonnegative weight for each class; if empty, all are 1.
struct target_options {
  double smoothing = 0;
  std::vector<double> class_weights = {};
};

/// The class weights with which all classes count the same, counted / (classes count_c), and 0 for a class
/// without counted vertices. `counts`: the counted vertices of each class.
inline std::vector<double> balanced_weights(std::span<const global_index> counts) {
  global_index counted = 0;
  for (const global_index count : counts) counted += count;
  std::vector<double> weights;
  for (const global_index count : counts)
    weights.push_back(count == 0 ? 0
                                 : static_cast<double>(counted) /
                                       (static_cast<double>(counts.size()) * static_cast<double>(count)));
  return weights;
}

/// Throws error unless the options fit these classes.
inline void require_target_options(const target_options& how, global_index classes) {
  if (!(how.smoothing >= 0 && how.smoothing < 1))
    base::throw_error<error>({"label smoothing must be in [0, 1), not ", std::to_string(how.smoothing)});
  if (!how.class_weights.empty() && std::ssize(how.class_weights) != classes)
    base::throw_error<error>(
        {how.class_weights.size(), " class weights were given for ", classes, " classes"});
  for (const double weight : how.class_weights)
    if (!(weight >= 0 && std::isfinite(weight)))
      base::throw_error<error>(
          {"a class weight is ", std::to_string(weight), ", not a finite number of 0 or more"});
}

/// The number of counted vertices of each class, over all ranks: label(v) for every global row v of this
/// rank, -1 for vertices that are not counted.
///
/// Collective over mesh::whole. What travels: an all-reduce of `classes` counts. Throws error for a label
/// that is not a class.
template <class Device, class Label>
std::vector<global_index> class_counts(const mesh<Device>& m, const blocking& rows, global_index classes,
                                       Label label) {
  std::vector<global_index> counts(static_cast<std::size_t>(classes));
  const interval mine = rows.block(vertex_rows.rows, m.at());
  for (global_index v = mine.begin; v < mine.end; ++v) {
    const auto c = static_cast<global_index>(label(v));
    detail::require_label(v, c, classes);
    if (c >= 0) ++counts[static_cast<std::size_t>(c)];
  }
  m.whole().all_reduce(counts);
  return counts;
}

/// The sum of w_y over all counted vertices, of target_options and labels as for soft_targets. Collective
/// over mesh::whole. What travels: see class_counts. Throws error for options that do not fit the classes.
template <class Device, class Label>
double weight_of_classes(const mesh<Device>& m, const blocking& rows, global_index classes, Label label,
                         const target_options& how) {
  require_target_options(how, classes);
  const std::vector<global_index> counts = class_counts(m, rows, classes, label);
  double total = 0;
  for (std::size_t c = 0; c < counts.size(); ++c)
    total += static_cast<double>(counts[c]) * (how.class_weights.empty() ? 1 : how.class_weights[c]);
  return total;
}

/// soft_targets, below, with `total` as the sum of weights. Local; no communication. Throws error for
/// options that do not fit the classes, and if the total is 0.
template <class T, class Device, class Label>
dense<T, vertex_rows, Device> soft_targets(const mesh<Device>& m, const blocking& rows, global_index classes,
                                           Label label, const target_options& how, double total) {
  require_target_options(how, classes);
  const std::vector<double> weights = how.class_weights.empty()
                                          ? std::vector<double>(static_cast<std::size_t>(classes), 1)
                                          : how.class_weights;
  if (total == 0)
    throw error("a loss averages over counted vertices, but all of them together have weight 0");
  return generate<vertex_rows, T>(
      m, rows, blocking::even(classes, m.shape(), nesting::cols), [&](global_index v, global_index c) {
        const auto y = static_cast<global_index>(label(v));
        if (y < 0) return T(0);
        const double own = c == y ? (1 - how.smoothing) * weights[static_cast<std::size_t>(y)] : 0;
        return static_cast<T>(
            (own + how.smoothing * weights[static_cast<std::size_t>(c)] / static_cast<double>(classes)) /
            total);
      });
}

/// The target distributions Q (n x classes) of labels y, with class weights w and smoothing s:
///   Q(v, c) = ((1 - s) w_y [c = y] + s w_c / classes) / (the sum of w_y over all counted vertices),
/// and 0 for vertices that are not counted, whose label is -1.
///
/// Collective over the mesh. What travels: see class_counts. Throws error for options that do not fit the
/// classes, and if the weights of all counted vertices are 0.
template <class T, class Device, class Label>
dense<T, vertex_rows, Device> soft_targets(const mesh<Device>& m, const blocking& rows, global_index classes,
                                           Label label, const target_options& how = {}) {
  return soft_targets<T>(m, rows, classes, label, how, weight_of_classes(m, rows, classes, label, how));
}

namespace detail {

/// -q log p, and 0 if q is 0.
struct cross_entropy_term {
  template <class T>
  constexpr T operator()(T log_p, T q) const {
    return q == T(0) ? T(0) : -q * log_p;
  }
};

/// total p, from log p.
struct times_probability {
  template <class T>
  constexpr T operator()(T log_p, T total) const {
    return total * std::exp(log_p);
  }
};

struct difference {
  template <class T>
  constexpr T operator()(T x, T y) const {
    return x - y;
  }
};

}  // namespace detail

/// loss = -(the sum over v and c of Q(v, c) log softmax(z)(v, c)); gradient = d loss / d z (n x classes).
/// With soft_targets(labels), that is cross_entropy with these labels, and as in torch with class weights and
/// smoothing.
///
/// Collective over the mesh. What travels: an all-reduce of one element. `memory`: grows to hold one number
/// for each logit and one for each row. Throws shape_error unless z, Q and the gradient have the same
/// blockings. Source of smoothing: Szegedy et al. (CVPR 2016), section 7.
template <class T, class Device>
double soft_cross_entropy(const dense<T, vertex_rows, Device>& z, const dense<T, vertex_rows, Device>& q,
                          dense<T, vertex_rows, Device>& gradient, buffer<T, Device>& memory) {
  detail::require_same_blocks("soft_cross_entropy of logits and targets", z, q);
  detail::require_same_blocks("soft_cross_entropy of logits and their gradient", z, gradient);
  log_softmax(z, gradient, memory);
  const std::size_t size = z.values().size(), rows = static_cast<std::size_t>(z.local().rows);
  memory.grow(z.mesh().queue(), std::max(memory.size(), size + rows));
  auto terms = dense<T, vertex_rows, Device>::view(z.mesh(), z.row_blocking(), z.col_blocking(),
                                                   memory.span().first(size));  // (n, classes)
  zip(gradient, q, terms, detail::cross_entropy_term{});
  const double loss = static_cast<double>(sum(terms));
  auto totals = dense<T, vertex_rows, Device>::view(z.mesh(), z.row_blocking(),
                                                    blocking::even(1, z.mesh().shape(), nesting::cols),
                                                    memory.span().subspan(size, rows));  // (n, 1)
  row_sums(q, totals);
  transform_rows(gradient, totals, gradient, detail::times_probability{});
  zip(gradient, q, gradient, detail::difference{});
  return loss;
}
template <class T, class Device>
double soft_cross_entropy(const dense<T, vertex_rows, Device>& z, const dense<T, vertex_rows, Device>& q,
                          dense<T, vertex_rows, Device>& gradient) {
  buffer<T, Device> memory;
  return soft_cross_entropy(z, q, gradient, memory);
}

}  // namespace partita::algebra
