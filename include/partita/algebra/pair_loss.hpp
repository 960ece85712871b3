// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Losses of scores of pairs, links and negatives, which are edge matrices of one column.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "partita/algebra/edge_verbs.hpp"

namespace partita::algebra {

/// log(1 + exp(-m)) of a margin m, the score of a link or minus that of a negative: the binary cross-entropy
/// of logits. A loss is a function of margins with its derivative, and may be user-defined.
struct logistic_pair_loss {
  template <class T>
  constexpr T operator()(T m) const {
    return std::max(-m, T(0)) + std::log1p(std::exp(-std::abs(m)));
  }
  template <class T>
  constexpr T slope(T m) const {
    return T(-1) / (T(1) + std::exp(m));
  }
};

/// max(0, margin - m).
struct margin_pair_loss {
  double margin = 1;

  template <class T>
  constexpr T operator()(T m) const {
    return std::max(T(0), static_cast<T>(margin) - m);
  }
  template <class T>
  constexpr T slope(T m) const {
    return m < static_cast<T>(margin) ? T(-1) : T(0);
  }
};

namespace detail {

/// |t| loss(sign of t times s).
template <class Loss>
struct pair_term {
  Loss loss;
  template <class T>
  constexpr T operator()(T s, T t) const {
    return t == T(0) ? T(0) : std::abs(t) * loss(t < T(0) ? -s : s);
  }
};
/// Its derivative with respect to s, times `scale`.
template <class Loss, class T>
struct pair_slope {
  Loss loss;
  T scale;
  constexpr T operator()(T s, T t) const { return scale * t * loss.slope(t < T(0) ? -s : s); }
};

}  // namespace detail

/// How often the entries of a matrix of pairs are links, or, negative, how often they are negatives: its
/// values (entries x 1), and their absolute sum over all ranks' entries. Collective over the mesh:
/// constructor. What travels: an all-reduce of one element over the ranks that own different entries.
template <class T, class Device>
class pair_signs {
 public:
  explicit pair_signs(const sparse<T, dynamic_layout, Device>& pairs) : signs_(pairs, 1) {
    const std::vector<T> values = pairs.local()->values_of_entries(pairs.mesh().queue());
    copy(pairs.mesh().queue(), std::span<const T>(values), signs_.values());
    double total[] = {0};
    for (const T t : values) total[0] += std::abs(static_cast<double>(t));
    pairs.mesh().control(detail::entry_axes(signs_)).all_reduce(total);
    weight_ = total[0];
  }

  const edge_matrix<T, Device>& values() const { return signs_; }
  double weight() const { return weight_; }

 private:
  edge_matrix<T, Device> signs_;
  double weight_ = 0;
};

/// The mean over links and negatives of loss(s) and loss(-s), s their scores (entries x 1), and its
/// gradient; 0 if there are no pairs. Collective over the mesh. What travels: an all-reduce of one element
/// over the ranks that own different entries. Throws shape_error unless all have one pattern.
template <class T, class Device, class Loss>
double pair_loss(const edge_matrix<T, Device>& scores, const pair_signs<T, Device>& signs,
                 edge_matrix<T, Device>& gradient, const Loss& loss) {
  const double weight = std::max(signs.weight(), 1.0);
  zip(scores, signs.values(), gradient, detail::pair_term<Loss>{loss});
  const double mean = static_cast<double>(sum(gradient)) / weight;
  zip(scores, signs.values(), gradient, detail::pair_slope<Loss, T>{loss, static_cast<T>(1 / weight)});
  return mean;
}

/// What this rank receives in one pair_loss, in closed form.
template <class T, class Device>
traffic predicted_pair_loss(const edge_matrix<T, Device>& scores) {
  return scores.mesh().all_reduced(detail::entry_axes(scores), 1);
}

}  // namespace partita::algebra
