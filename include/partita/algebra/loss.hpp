// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Losses and accuracy over the counted vertices.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "partita/algebra/reductions.hpp"

namespace partita::algebra {

namespace detail {

/// Throws error unless this label of vertex v is -1 or a class below `classes`.
inline void require_label(global_index v, global_index label, global_index classes) {
  if (label < -1)
    base::throw_error<error>({"vertex ", v, " has label ", label, "; one that is not counted has label -1"});
  if (label >= classes)
    base::throw_error<error>({"vertex ", v, " has label ", label, " of ", classes, " classes"});
}

}  // namespace detail

/// The labels of this rank's rows of a vertex_rows matrix; -1 for vertices not counted.
template <class Device>
class vertex_labels {
 public:
  /// label(v) for every global row v of this rank; `counted` is the number of counted vertices over all ranks
  /// of mesh::whole. Collective over these ranks. What travels: an all-reduce of one element. Throws error
  /// for a label below -1.
  template <class Function>
  vertex_labels(const mesh<Device>& m, const blocking& rows, Function label) : rows_(rows) {
    const interval mine = rows.block(vertex_rows.rows, m.at());
    std::vector<local_index> values;
    global_index count[] = {0};
    for (global_index v = mine.begin; v < mine.end; ++v) {
      const auto of_v = static_cast<global_index>(label(v));
      detail::require_label(v, of_v, std::numeric_limits<local_index>::max());
      values.push_back(static_cast<local_index>(of_v));
      count[0] += of_v >= 0;
      if (of_v > greatest_) greatest_ = of_v, vertex_of_greatest_ = v;
    }
    m.whole().all_reduce(count);
    counted_ = count[0];
    values_ = buffer<local_index, Device>(m.queue(), values.size());
    copy(m.queue(), std::span<const local_index>(values), values_.span());
  }

  global_index counted() const { return counted_; }
  const local_index* data() const { return values_.data(); }

  /// Throws shape_error unless the labels belong to the rows of these logits, and error for a label without a
  /// column.
  template <class T>
  void require_fit(const dense<T, vertex_rows, Device>& logits) const {
    if (!(rows_ == logits.row_blocking()))
      base::throw_error<shape_error>(
          {"labels of ", rows_.size(), " rows were given for logits of ", logits.shape(),
           rows_.size() == logits.shape().rows ? ", whose rows are in other blocks" : ""});
    detail::require_label(vertex_of_greatest_, greatest_, logits.shape().cols);
  }

 private:
  blocking rows_;
  global_index greatest_ = -1, vertex_of_greatest_ = 0;  ///< of this rank's labels
  buffer<local_index, Device> values_;
  global_index counted_ = 0;
};

namespace detail {

inline void require_counted(global_index counted, matrix_shape logits) {
  if (counted < 1)
    base::throw_error<error>({"a loss averages over counted vertices, but logits of ", logits, " have none"});
}

}  // namespace detail

/// loss = mean over counted vertices of -log softmax(z)_label; gradient = d loss / d z (n x classes).
///
/// Collective over the mesh. What travels: an all-reduce of one element. Throws error if no vertex is
/// counted, and as vertex_labels::require_fit.
template <class T, class Device>
double cross_entropy(const dense<T, vertex_rows, Device>& logits, const vertex_labels<Device>& labels,
                     dense<T, vertex_rows, Device>& gradient) {
  labels.require_fit(logits);
  detail::require_counted(labels.counted(), logits.shape());
  const T scale = T(1) / static_cast<T>(labels.counted());
  if (const auto* const verbs = reproducible_verbs_of<T>(logits.mesh()))
    return verbs->cross_entropy(logits, labels.data(), scale, gradient) /
           static_cast<double>(labels.counted());
  double total[] = {local::chunked::cross_entropy(logits.mesh().queue(), logits.local(), labels.data(), scale,
                                                  gradient.local())};
  if (logits.mesh().size() > 1) logits.mesh().world().all_reduce(total);
  return total[0] / static_cast<double>(labels.counted());
}

/// Whether cross_entropy may be split into two halves: on devices that enqueue, without far memory, and not
/// on reproducible meshes. Local.
template <class T, class Device>
bool has_late_cross_entropy(const mesh<Device>& m) {
  return memory::enqueues<Device> && local::runs_whole(m.queue()) && reproducible_verbs_of<T>(m) == nullptr;
}
/// The first half of cross_entropy, which does not block the host: the gradient, and this rank's part of the
/// sum of losses. Local; no communication. Throws as cross_entropy.
template <class T, class Device>
requires memory::enqueues<Device>
void start_cross_entropy(const dense<T, vertex_rows, Device>& logits, const vertex_labels<Device>& labels,
                         dense<T, vertex_rows, Device>& gradient, memory::late<double, Device>& sum) {
  labels.require_fit(logits);
  detail::require_counted(labels.counted(), logits.shape());
  start_cross_entropy(logits.mesh().queue(), logits.local(), labels.data(),
                      T(1) / static_cast<T>(labels.counted()), gradient.local(), sum);
}
/// The second half, after the queue has been synchronised: the loss. Collective over the mesh. What travels:
/// an all-reduce of one element.
template <class Device>
double finish_cross_entropy(const mesh<Device>& m, const vertex_labels<Device>& labels,
                            const memory::late<double, Device>& sum) {
  double total[] = {sum.get()};
  if (m.size() > 1) m.world().all_reduce(total);
  return total[0] / static_cast<double>(labels.counted());
}

namespace detail {

/// max(z, 0) - z t + log(1 + exp(-|z|)), or 0 for vertices not counted.
struct logistic_term {
  template <class T>
  constexpr T operator()(T z, T t) const {
    return t < T(0) ? T(0) : std::max(z, T(0)) - z * t + std::log1p(std::exp(-std::abs(z)));
  }
};

/// scale (1 / (1 + exp(-z)) - t), or 0 for vertices not counted.
template <class T>
struct logistic_gradient {
  T scale;
  constexpr T operator()(T z, T t) const {
    return t < T(0) ? T(0) : scale * (T(1) / (T(1) + std::exp(-z)) - t);
  }
};

}  // namespace detail

/// loss = mean over counted vertices and all classes of the logistic loss of z against 0/1 targets, max(z, 0)
/// - z t + log(1 + exp(-|z|)); gradient = d loss / d z (n x classes). Vertices not counted have targets of
/// -1.
///
/// Collective over the mesh. What travels: an all-reduce of one element. Throws shape_error, and error if no
/// vertex is counted.
template <class T, class Device>
double logistic_loss(const dense<T, vertex_rows, Device>& logits,
                     const dense<T, vertex_rows, Device>& targets, global_index counted,
                     dense<T, vertex_rows, Device>& gradient) {
  detail::require_same_blocks("logistic_loss of logits and targets", logits, targets);
  detail::require_same_blocks("logistic_loss of logits and their gradient", logits, gradient);
  detail::require_counted(counted, logits.shape());
  const double terms = static_cast<double>(counted) * static_cast<double>(logits.shape().cols);
  zip(logits, targets, gradient, detail::logistic_term{});
  const double loss = static_cast<double>(sum(gradient)) / terms;
  zip(logits, targets, gradient, detail::logistic_gradient<T>{static_cast<T>(1 / terms)});
  return loss;
}

/// For each set of labels, the fraction of counted vertices whose largest logit (the first among equals) is
/// at their label; 0 if none is counted. Logits with a NaN are never right.
///
/// Collective over the mesh. What travels: an all-reduce of one element per set. Throws as
/// vertex_labels::require_fit.
template <class T, class Device, class... Labels>
std::array<double, sizeof...(Labels)> accuracies(const dense<T, vertex_rows, Device>& logits,
                                                 const Labels&... labels) {
  (labels.require_fit(logits), ...);
  auto right =
      local::chunked::count_correct(logits.mesh().queue(), logits.local(), std::array{labels.data()...});
  if (const auto& all = logits.mesh().whole(); all.size() > 1) all.all_reduce(std::span<global_index>(right));
  std::array<double, sizeof...(Labels)> shares{};
  for (std::size_t k = 0; const global_index counted : {labels.counted()...}) {
    shares[k] = counted == 0 ? 0 : static_cast<double>(right[k]) / static_cast<double>(counted);
    ++k;
  }
  return shares;
}
/// The accuracy for one set.
template <class T, class Device>
double accuracy(const dense<T, vertex_rows, Device>& logits, const vertex_labels<Device>& labels) {
  return accuracies(logits, labels)[0];
}

}  // namespace partita::algebra
