// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of messages on a reproducible mesh.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "partita/algebra/exact_sums.hpp"
#include "partita/algebra/product_stages.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/host/exact_messages.hpp"

namespace partita::algebra {

/// Sums whose terms are rounded to a common grid, once for float, with the remainders a second time for
/// double.
template <class T, class Device>
class exact_messages final : public reproducible_messages<T, Device> {
 public:
  using base_class = reproducible_messages<T, Device>;
  using typename base_class::function;
  using typename base_class::parts;

  /// See reproducible_verbs.
  exact_messages(const sparse<T, dynamic_layout, Device>& pattern, layout l, layout spread,
                 const blocking& features)
      : pattern_(pattern),
        exact_(pattern.mesh().with_exact_sums()),
        spread_(spread),
        columns_({exact_, pattern.row_blocking(), pattern.col_blocking(), features, pattern.layout(), spread,
                  detail::row_flow::sums_go},
                 pattern.analysed(), {stationary::a, row_exchange::full}, detail::entry_values::given),
        exchanged_(columns_.plan().blocks().exchanged(columns_.plan().options())),
        wide_(columns_.plan().blocks().col_cut()),
        rows_(exact_, pattern.row_blocking(), features, pattern.layout(), l, wide_),
        row_sums_(detail::partial_sums<double, Device>::predicted(exact_, pattern.row_blocking(), features,
                                                                  pattern.layout(), l, wide_)),
        entries_(exact_.control(pattern.layout().used())
                     .all_reduce(static_cast<global_index>(pattern.local()->nonzeros))),
        columns_of_operands_(features.size()) {
    if (!partition::same_blocks(exact_.shape(), exchanged_, l))
      change_ = std::make_unique<redistribution<double, Device>>(exact_, pattern.col_blocking(), features,
                                                                 exchanged_, l);
  }

  void begin(parts all, const function& f, bool slopes) override {
    std::vector<double> largest(slopes ? 3 + f.parameters() : 1, 0);
    for (const message_part<T>& p : all)
      terms_of(p, f, slopes, false, [&](auto, auto, auto, local_index count, const auto& terms) {
        for (std::size_t k = 0; k < largest.size(); ++k)
          for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j) {
            const double size = std::abs(static_cast<double>(terms[k][j]));
            largest[k] = size >= largest[k]  ? size
                         : size < largest[k] ? largest[k]
                                             : std::numeric_limits<double>::infinity();
          }
      });
    if (exact_.whole().size() > 1) exact_.whole().all_reduce(largest, reduction::max);
    if (largest.size() > function::parameter)
      std::fill(largest.begin() + function::parameter, largest.end(),
                *std::max_element(largest.begin() + function::parameter, largest.end()));
    slopes_ = slopes;
    grids_.clear();
    const global_index entries = exact_.is_part() ? exact_.whole().all_reduce(entries_) : entries_;
    const global_index terms = std::max(entries, columns_of_operands_);  // the most that make a sum
    for (const double x : largest) grids_.push_back(base::exact_grid::of_products(x, 1, terms));
  }

  void add_rows(parts all, const function& f, std::size_t output, matrix_view<T> z) override {
    add(grids_[output], z, [&](auto part, matrix_view<double> y) {
      const matrix_view<double> to = rows_.empty() ? y : rows_.input();
      fill(queue(), 0.0, to);
      for (const message_part<T>& p : all)
        terms_of(p, f, slopes_, true,
                 [&](local_index i, auto, local_index first, local_index count, const auto& terms) {
                   double* const sums = to.row_data(p.part.first_row + i) + first;
                   for (local_index j = 0; j < count; ++j)
                     sums[j] += part(terms[output][static_cast<std::size_t>(j)]);
                 });
      rows_(y);
    });
  }

  void add_columns(parts all, const function& f, matrix_view<T> x) override {
    const auto& m = exact_;
    const auto height =
        static_cast<local_index>(pattern_.col_blocking().block(exchanged_.rows, m.at()).size());
    const auto width = static_cast<local_index>(columns_.plan().width());
    buffer<double, Device> memory(queue(),
                                  static_cast<std::size_t>(height) * static_cast<std::size_t>(width));
    add(grids_[function::source], x, [&](auto part, matrix_view<double> y) {
      const matrix_view<double> sums = change_ ? matrix_view<double>{memory.data(), height, width, width} : y;
      columns_.for_stages(
          {}, sums, 0, [&](std::size_t t, const local::csr_slice<T>& of, auto, double beta, auto to) {
            if (beta == 0) fill(queue(), 0.0, to);
            const auto& p = *std::find_if(all.begin(), all.end(), [&](const message_part<T>& one) {
              return one.tile == t && one.part.first_row == of.first_row;
            });
            terms_of(p, f, true, false,
                     [&](auto, local_index e, local_index first, local_index count, const auto& terms) {
                       double* const at = to.row_data(of.entries.columns[e]) + first;
                       for (local_index j = 0; j < count; ++j)
                         at[j] += part(terms[function::source][static_cast<std::size_t>(j)]);
                     });
          });
      if (change_) (*change_)(matrix_view<const double>(sums), y);
    });
  }

  void add_heads(parts all, const function& f, std::size_t output, const local::head_slice& s,
                 std::span<T> values) override {
    buffer<double, Device> sums(queue(), base::exact_sums<T> * values.size());
    base::for_exact_parts<T>(grids_[output], [&](int level, auto part) {
      const auto of_level =
          sums.span().subspan(static_cast<std::size_t>(level) * values.size(), values.size());
      std::fill(of_level.begin(), of_level.end(), 0.0);
      for (const message_part<T>& p : all)
        terms_of(p, f, slopes_, true,
                 [&](auto, local_index e, local_index first, local_index count, const auto& terms) {
                   double* const to =
                       of_level.data() + (p.part.base + static_cast<std::size_t>(e)) * heads_of(s);
                   for (local_index j = 0; j < count; ++j)
                     to[s.head_of(first + j)] += part(terms[output][static_cast<std::size_t>(j)]);
                 });
    });
    if (const auto& group = exact_.along(spread_.cols); group.size() > 1) group.all_reduce(sums.span());
    add_rounded(sums, values);
  }

  void add_parameters(parts all, const function& f, matrix_view<T> gradient) override {
    const auto size = static_cast<std::size_t>(gradient.rows) * static_cast<std::size_t>(gradient.cols);
    const auto here = static_cast<local_index>(columns_.plan().columns().begin);
    detail::sum_over_ranks(
        pattern_.mesh(), pattern_.layout().used() | spread_.cols, grids_[function::parameter],
        std::span<T>(gradient.data, size), [&](auto part, double* sums) {
          std::fill_n(sums, size, 0.0);
          for (const message_part<T>& p : all)
            terms_of(p, f, true, false,
                     [&](auto, auto, local_index first, local_index count, const auto& terms) {
                       for (local_index k = 0; k < gradient.rows; ++k)
                         for (local_index j = 0; j < count; ++j)
                           sums[std::ptrdiff_t{k} * gradient.cols + here + first + j] +=
                               part(terms[function::parameter + static_cast<std::size_t>(k)]
                                         [static_cast<std::size_t>(j)]);
                     });
        });
  }

  void choose(parts all, const function& f, T sign, matrix_view<T> best,
              matrix_view<local_index> winners) override {
    for (const message_part<T>& p : all)
      terms_of(p, f, false, true,
               [&](local_index i, local_index e, local_index first, local_index count, const auto& terms) {
                 const local_index row = p.part.first_row + i,
                                   name = p.gradient.names[e] + p.gradient.first_name;
                 for (local_index j = 0; j < count; ++j) {
                   const T m = sign * terms[0][static_cast<std::size_t>(j)];
                   T& so_far = best(row, first + j);
                   local_index& winner = winners(row, first + j);
                   if (!local::beats(m, name, so_far, winner)) continue;
                   so_far = m;
                   winner = name;
                 }
               });
  }

  traffic predicted_begin(global_index outputs) const override {
    return detail::predicted_all_reduce(exact_, outputs) +
           (exact_.is_part() ? detail::predicted_all_reduce(exact_, 1) : traffic{});
  }
  traffic predicted_rows() const override { return times * row_sums_; }
  traffic predicted_columns() const override {
    return times * (columns_.plan().predicted_stages() + (change_ ? change_->predicted() : traffic{}));
  }
  traffic predicted_heads(local_index heads) const override {
    return exact_.all_reduced(spread_.cols,
                              times * static_cast<global_index>(pattern_.local()->nonzeros) * heads);
  }
  traffic predicted_parameters(global_index elements) const override {
    return detail::predicted_sums<T>(exact_, pattern_.layout().used() | spread_.cols, elements);
  }

 private:
  static constexpr global_index times = base::exact_sums<T>;

  const device_queue<Device>& queue() const { return exact_.queue(); }
  static std::size_t heads_of(const local::head_slice& s) { return static_cast<std::size_t>(s.heads); }
  template <class Visit>
  void terms_of(const message_part<T>& p, const function& f, bool slopes, bool by_rows,
                const Visit& visit) const {
    const auto factor = [&](local_index i, local_index e, local_index j) {
      if (slopes) return p.gradient(i, e, j);
      return p.gradient.weights.cols > 0 ? p.gradient.weights(i, 0) : T(1);
    };
    exact_message_terms(queue(), f, p.part.entries, p.of, factor, slopes, by_rows, visit);
  }
  /// z += the sums that fill(part, y) leaves in y, of z's shape.
  template <class Fill>
  void add(const base::exact_grid& grid, matrix_view<T> z, const Fill& fill_sums) {
    const auto size = static_cast<std::size_t>(z.rows) * static_cast<std::size_t>(z.cols);
    buffer<double, Device> sums(queue(), times * size);
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      fill_sums(part, matrix_view<double>{sums.data() + static_cast<std::size_t>(level) * size, z.rows,
                                          z.cols, z.cols});
    });
    add_rounded(sums, std::span<T>(z.data, size));
  }
  void add_rounded(const buffer<double, Device>& sums, std::span<T> to) {
    buffer<T, Device> rounded(queue(), to.size());
    round_sums(queue(), sums.span(), 1.0, rounded.span());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += rounded.span()[i];
  }

  sparse<T, dynamic_layout, Device> pattern_;
  mesh<Device> exact_;
  layout spread_;
  detail::product_stages<T, Device, double, T> columns_;
  layout exchanged_;
  bool wide_;
  detail::partial_sums<double, Device> rows_;
  traffic row_sums_;
  global_index entries_, columns_of_operands_;
  std::unique_ptr<redistribution<double, Device>> change_;
  std::vector<base::exact_grid> grids_;
  bool slopes_ = false;
};

}  // namespace partita::algebra
