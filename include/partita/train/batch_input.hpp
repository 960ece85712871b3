// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The input rows of sampled blocks, H_0 = R X, for X cut by rows or by columns.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "partita/algebra/operand.hpp"
#include "partita/sampling/block_matrix.hpp"
#include "partita/transfer/gather_rows.hpp"

namespace partita::nn {

/// The inputs of the micro-batches of an iteration. Collective over the ranks of X: all members but input()
/// and the counts. An iteration calls assign, start, finish, and then input for each micro-batch.
template <class T, class Device>
class batch_input {
 public:
  using samples = std::vector<sampling::sample<T>>;
  using matrix = dense<T, vertex_rows, Device>;

  virtual ~batch_input() = default;

  /// Looks at what the micro-batches need of X; `parts` must outlive their use.
  virtual void assign(const samples& parts) = 0;
  /// Begins to move it, and waits for it.
  virtual void start() = 0;
  virtual void finish() = 0;
  /// H_0 of micro-batch k, valid until the next call or release.
  virtual algebra::operand<T, Device> input(std::size_t k) = 0;
  /// Frees the memory of the last H_0 and its gradient.
  virtual void release() = 0;
  /// Where X is learned: a matrix for the gradient of H_0 of micro-batch k, to be given to rows().add; null
  /// where layers need not compute it, since input(k) collects the gradients of its products.
  virtual matrix* gradient(std::size_t k) = 0;
  /// The rows that all micro-batches need, and sums of their gradients. Throws error where X is not of T,
  /// which then is not learned.
  virtual gather_rows_plan<T, Device>& rows() = 0;
  /// See gather_rows_plan::read_own.
  virtual void read_own(memory::row_cache& cache) = 0;

  /// Rows asked for by all micro-batches, and distinct ones of them of which other ranks have a part.
  virtual global_index requested_rows() const = 0;
  virtual global_index remote_rows() const = 0;
  /// What this rank receives in assign, start and finish.
  virtual traffic predicted() const = 0;
  /// What it receives in products of an input with a weight of `width` columns and their gradients, in all
  /// micro-batches.
  virtual traffic predicted_products(global_index) const { return {}; }
};

namespace detail {

/// The plan where it can also add gradients: where X is of T.
template <class T, class S, class Device>
gather_rows_plan<T, Device>& learned_rows(gather_rows_plan<S, Device>& plan) {
  if constexpr (std::is_same_v<S, T>)
    return plan;
  else
    throw error("features stored as bfloat16 have no gradient");
}

}  // namespace detail

/// Rows of X, put together on the rank that computes with them: even, owner, column_gather. Rows that several
/// micro-batches need travel once. S: what X, and H_0, are stored as.
///
/// What travels: see gather_rows_plan.
template <class T, class Device, class S = T>
class gathered_input final : public batch_input<T, Device> {
 public:
  using typename batch_input<T, Device>::samples;
  using typename batch_input<T, Device>::matrix;

  /// x (n x f) must outlive the input; `alone`: the mesh of one rank on which layers compute.
  gathered_input(const dense<S, dynamic_layout, Device>& x, const mesh<Device>& alone)
      : x_(x), alone_(alone), plan_(x) {}

  void assign(const samples& parts) override {
    ids_.resize(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) ids_[k] = parts[k].vertices;
    plan_.assign(ids_);
  }
  void start() override { plan_.start(x_); }
  void finish() override { plan_.finish(); }
  algebra::operand<T, Device> input(std::size_t k) override {
    rows_.reset();
    rows_.emplace(alone_, plan_.shape(k));  // (inputs, f)
    plan_.rows(k, x_, *rows_);
    return *rows_;
  }
  void release() override { rows_.reset(), gradient_.reset(); }
  matrix* gradient(std::size_t k) override {
    gradient_.reset();
    gradient_.emplace(alone_, plan_.shape(k));  // (inputs, f)
    return &*gradient_;
  }
  gather_rows_plan<T, Device>& rows() override { return detail::learned_rows<T>(plan_); }
  void read_own(memory::row_cache& cache) override { plan_.read_own(cache); }
  global_index requested_rows() const override { return plan_.requested_rows(); }
  global_index remote_rows() const override { return plan_.remote_rows(); }
  traffic predicted() const override { return plan_.predicted() + plan_.predicted_assign(); }

 private:
  const dense<S, dynamic_layout, Device>& x_;
  mesh<Device> alone_;
  gather_rows_plan<S, Device> plan_;
  std::vector<std::vector<global_index>> ids_;
  std::optional<dense<S, vertex_rows, Device>> rows_;
  std::optional<matrix> gradient_;
};

/// Column slices of the rows that all ranks need: column. Rows of X stay where they are; the first block and
/// the vertices of each rank travel to all others. S: what X is stored as; slices are of T.
///
/// What travels: with assign, the vertices of the inputs of all ranks and, where the first layer multiplies
/// by them, their first blocks; in products with a weight, see algebra::column_slices. Source: P3 (Gandhi,
/// Iyer, OSDI 2021), section 3.2.
template <class T, class Device, class S = T>
class sliced_input final : public batch_input<T, Device> {
 public:
  using typename batch_input<T, Device>::samples;
  using typename batch_input<T, Device>::matrix;

  /// x (n x f) has its columns cut over all ranks; `aggregates`: whether the first layer multiplies by its
  /// block before its weight; `products`: with how many weights; `learned`: whether X needs a gradient;
  /// `rounds`: see algebra::column_slices::multiply_by.
  sliced_input(const dense<S, dynamic_layout, Device>& x, const mesh<Device>& alone, bool aggregates,
               int products, bool learned, bool rounds)
      : x_(x),
        alone_(alone),
        rows_of_x_(x, transfer::gathered_columns::own),
        aggregates_(aggregates),
        products_(products),
        learned_(learned),
        rounds_(rounds) {}

  void assign(const samples& parts) override {
    const communicator& world = x_.mesh().world();
    parts_.resize(parts.size());
    predicted_ = {};
    requested_ = 0;
    std::vector<global_index> sizes;
    for (const auto& sample : parts) {
      requested_ += std::ssize(sample.vertices);
      const auto& b = sample.blocks[0];
      sizes.insert(sizes.end(), {b.cols, b.rows, static_cast<global_index>(b.columns.size())});
    }
    const std::vector<global_index> all_sizes = world.all_gather(sizes);
    count(all_gathered(ssize(sizes)));
    ids_.resize(parts.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      part& p = parts_[k];
      p.inputs.clear(), p.targets.clear(), p.entries.clear();
      for (std::size_t q = 0; q < static_cast<std::size_t>(world.size()); ++q) {
        const global_index* const of = &all_sizes[3 * (q * parts.size() + k)];
        p.inputs.push_back(of[0]), p.targets.push_back(of[1]), p.entries.push_back(of[2]);
      }
      ids_[k] = gathered(parts[k].vertices, p.inputs);
      if (aggregates_) p.diagonal = gathered_blocks(parts[k].blocks[0], p);
    }
    rows_of_x_.assign(ids_);
  }
  void start() override { rows_of_x_.start(x_); }
  void finish() override { rows_of_x_.finish(); }
  algebra::operand<T, Device> input(std::size_t k) override {
    const part& p = parts_[k];
    auto slices =
        std::make_shared<matrix>(alone_, rows_of_x_.shape(k));  // (inputs of all ranks, columns here)
    if constexpr (std::is_same_v<S, T>) {
      rows_of_x_.rows(k, x_, *slices);
    } else {
      dense<S, vertex_rows, Device> stored(alone_, rows_of_x_.shape(k));
      rows_of_x_.rows(k, x_, stored);
      copy(stored, *slices);
    }
    vertices_ = buffer<global_index, Device>(alone_.queue(), ids_[k].size());
    copy(alone_.queue(), std::span<const global_index>(ids_[k]), vertices_.span());
    slices_.emplace(x_.mesh(), p.inputs, x_.col_range(), x_.shape().cols, std::move(slices),
                    vertices_.data());
    if (learned_) slices_->collect_gradient([this, k](const matrix& summand) { rows().add(k, summand); });
    if (aggregates_) slices_->multiply_by(block_matrix(alone_, p.diagonal, false), p.targets, rounds_);
    return *slices_;
  }
  void release() override { slices_.reset(); }
  matrix* gradient(std::size_t) override { return nullptr; }
  gather_rows_plan<T, Device>& rows() override { return detail::learned_rows<T>(rows_of_x_); }
  void read_own(memory::row_cache& cache) override { rows_of_x_.read_own(cache); }
  global_index requested_rows() const override { return requested_; }
  global_index remote_rows() const override { return 0; }
  traffic predicted() const override { return predicted_; }
  traffic predicted_products(global_index width) const override {
    traffic v;
    const auto& m = x_.mesh();
    for (const part& p : parts_)
      for (int product = 0; product < products_; ++product)
        for (const operation kind : {operation::reduce_scatter, operation::all_gather}) {
          const auto& rows = aggregates_ ? p.targets : p.inputs;
          for (int q = 0; q < m.size(); ++q) {
            const global_index n =
                rows[static_cast<std::size_t>(kind == operation::all_gather ? q : m.rank())];
            if (q != m.rank() && n > 0) v += {n * width, 1};
          }
        }
    return v;
  }

 private:
  /// One micro-batch of all ranks.
  struct part {
    std::vector<global_index> inputs, targets, entries;  ///< of each rank's first block
    sampling::block<T> diagonal;                         ///< of these blocks
  };

  void count(traffic t) { predicted_ += t; }
  traffic all_gathered(global_index each) const {
    const int others = x_.mesh().size() - 1;
    return {each * others, each > 0 ? others : 0};
  }
  template <class Element>
  std::vector<Element> gathered(const std::vector<Element>& mine, const std::vector<global_index>& counts) {
    for (int q = 0; q < x_.mesh().size(); ++q)
      if (const global_index n = counts[static_cast<std::size_t>(q)]; q != x_.mesh().rank() && n > 0)
        count({n, 1});
    return x_.mesh().world().all_gather(mine, counts);
  }
  sampling::block<T> gathered_blocks(const sampling::block<T>& mine, const part& p) {
    std::vector<local_index> lengths;
    for (std::size_t i = 0; i + 1 < mine.offsets.size(); ++i)
      lengths.push_back(mine.offsets[i + 1] - mine.offsets[i]);
    const std::vector<local_index> all_lengths = gathered(lengths, p.targets);
    sampling::block<T> all{0, 0, {0}, gathered(mine.columns, p.entries), gathered(mine.values, p.entries)};
    auto column = all.columns.begin();
    for (std::size_t q = 0; q < p.inputs.size(); ++q) {
      for (global_index e = 0; e < p.entries[q]; ++e) *column++ += all.cols;
      all.rows += base::to_local(p.targets[q], "the number of targets");
      all.cols += base::to_local(p.inputs[q], "the number of inputs");
    }
    for (const local_index length : all_lengths) all.offsets.push_back(all.offsets.back() + length);
    return all;
  }

  const dense<S, dynamic_layout, Device>& x_;
  mesh<Device> alone_;
  gather_rows_plan<S, Device> rows_of_x_;
  bool aggregates_;
  int products_;
  bool learned_, rounds_;
  std::vector<part> parts_;
  std::vector<std::vector<global_index>> ids_;
  global_index requested_ = 0;
  traffic predicted_;
  buffer<global_index, Device> vertices_;
  std::optional<algebra::column_slices<T, Device>> slices_;
};

}  // namespace partita::nn
