// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a tape records: matrices, and the verbs that compute one from others.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "partita/algebra/edge_verbs.hpp"
#include "partita/algebra/operand.hpp"

namespace partita::autodiff {

template <class T, class Device>
class tape;

/// What differs between two runs of a tape: whether dropout is applied, and its seed.
struct step {
  bool training = true;
  std::uint64_t epoch = 0;
  /// If the rows of matrices are a selection of vertices: the vertex of each row, in device memory.
  const global_index* vertices = nullptr;
};

namespace detail {

/// Where the blocks of a matrix are.
template <class Device>
struct place {
  partita::mesh<Device> mesh;
  partita::layout layout;
  blocking rows, cols;

  matrix_shape shape() const { return {rows.size(), cols.size()}; }
};

/// A matrix under each type that verbs ask for, all of them views of one block; or an edge matrix.
template <class T, class Device>
class matrix_views {
 public:
  /// Views x from now on; x must outlive the views. Views of a const x may only be read.
  template <layout L>
  void see(dense<T, L, Device>& x) {
    view(x, x.values());
  }
  template <layout L>
  void see(const dense<T, L, Device>& x) {
    view(x, x.values());
  }
  void see(const edge_matrix<T, Device>& e) { edges_ = &e; }
  void allocate(const place<Device>& at) {
    owned_.emplace(at.mesh, at.layout, at.rows, at.cols);
    see(*owned_);
  }
  void allocate(const sparse<T, dynamic_layout, Device>& pattern, local_index columns) {
    owned_edges_.emplace(pattern, columns);
    see(*owned_edges_);
  }
  /// Views the matrix that was allocated, or nothing.
  void see_own() {
    any_.reset();
    if (owned_) see(*owned_);
  }
  /// Frees the matrix that was allocated.
  void release() {
    owned_.reset();
    any_.reset();
    owned_edges_.reset();
    edges_ = nullptr;
  }
  bool bound() const { return any_.has_value() || edges_ != nullptr; }

  dense<T, dynamic_layout, Device>& any() { return *any_; }
  dense<T, vertex_rows, Device>& rows() { return *rows_; }
  dense<T, replicated, Device>& whole() { return *whole_; }
  const edge_matrix<T, Device>& edges() const { return *edges_; }
  /// The edge matrix that was allocated here, to write to.
  edge_matrix<T, Device>& own_edges() { return *owned_edges_; }

 private:
  template <layout L, class Values>
  void view(const dense<T, L, Device>& x, Values values) {
    const auto* const now = any_ ? std::as_const(*any_).values().data() : nullptr;
    if (any_ && now == values.data() && any_->row_blocking() == x.row_blocking()) return;
    any_.emplace(dense<T, dynamic_layout, Device>::view(x.mesh(), x.layout(), x.row_blocking(),
                                                        x.col_blocking(), values));
    if (x.layout() == vertex_rows)
      rows_.emplace(
          dense<T, vertex_rows, Device>::view(x.mesh(), x.row_blocking(), x.col_blocking(), values));
    if (x.layout() == replicated)
      whole_.emplace(
          dense<T, replicated, Device>::view(x.mesh(), x.row_blocking(), x.col_blocking(), values));
  }

  std::optional<dense<T, dynamic_layout, Device>> owned_, any_;
  std::optional<dense<T, vertex_rows, Device>> rows_;
  std::optional<dense<T, replicated, Device>> whole_;
  const edge_matrix<T, Device>* edges_ = nullptr;
  std::optional<edge_matrix<T, Device>> owned_edges_;
};

/// The matrix of views for both kinds of verbs: in any layout, or with whole rows; or an edge matrix.
struct whole_matrix {
  template <class T, class Device>
  using matrix = dense<T, dynamic_layout, Device>;

  static auto& read(auto& views) { return views.any(); }
  static auto& write(auto& views) { return views.any(); }
  static const auto& read_rows(auto& views) { return views.rows(); }
  static auto& write_rows(auto& views) { return views.rows(); }
};
struct whole_edges {
  template <class T, class Device>
  using matrix = edge_matrix<T, Device>;

  static const auto& read(auto& views) { return views.edges(); }
  static auto& write(auto& views) { return views.own_edges(); }
  static const auto& read_rows(auto& views) { return views.edges(); }
  static auto& write_rows(auto& views) { return views.own_edges(); }
};

template <class T, class Device>
class node;

/// A matrix of a tape, or an edge matrix (entries x columns of `at`), and its gradient. The gradient of a
/// replicated matrix is this rank's contribution.
template <class T, class Device>
struct slot {
  place<Device> at;
  bool needs_gradient;
  bool varies;  ///< its entries differ between steps
  node<T, Device>* producer = nullptr;
  int uses = 0;  ///< nodes that read it, and whoever keeps it
  bool kept = false;
  bool sliced = false;       ///< is slices of columns now, each with its own gradient
  slot* in_place = nullptr;  ///< the slot that is computed in its memory, and shares its gradient
  std::shared_ptr<matrix_views<T, Device>> value = std::make_shared<matrix_views<T, Device>>();
  std::shared_ptr<matrix_views<T, Device>> gradient = std::make_shared<matrix_views<T, Device>>();
  bool written = false;  ///< whether the gradient has been, in this backward
  matrix_views<T, Device> spare = {};
  dense<T, replicated, Device>*weight = nullptr, *weight_gradient = nullptr;  ///< of a parameter
  std::optional<algebra::operand<T, Device>> given = {};                      ///< of an input
  std::optional<algebra::dense_operand<T, Device>> written_out = {};
  std::optional<sparse<T, dynamic_layout, Device>> pattern = {};  ///< of an edge matrix

  void allocate(matrix_views<T, Device>& views) const {
    if (pattern)
      views.allocate(*pattern, static_cast<local_index>(at.cols.size()));
    else
      views.allocate(at);
  }
  /// Calls f with the form of the matrix for element-wise verbs.
  template <class F>
  void with_form(F f) const {
    pattern ? f(whole_edges()) : f(whole_matrix());
  }
  /// The slot in whose memory this one is computed.
  const slot& computed_in() const { return in_place == nullptr ? *this : in_place->computed_in(); }
  /// Whether `other` can use its memory.
  bool can_share(const slot& other) const {
    const bool same_pattern =
        pattern && other.pattern ? pattern->local() == other.pattern->local() : !pattern && !other.pattern;
    return same_pattern && at.layout == other.at.layout && at.rows == other.at.rows &&
           at.cols == other.at.cols;
  }
  /// The matrix with whole rows, in the form in which it was given.
  algebra::operand<T, Device> operand() {
    if (given) return *given;
    return value->rows();
  }
  /// The same as a dense matrix.
  dense<T, vertex_rows, Device>& rows() { return value->rows(); }

  /// Sets the gradient with write(views), or adds to it what write(views) writes if it is already written.
  template <class Write>
  void give(Write write) {
    if (!needs_gradient) return;
    if (!written) {
      written = true;
      return write(*gradient);
    }
    if (!spare.bound()) allocate(spare);
    write(spare);
    add(T(1), spare);
  }
  /// Adds a d to the gradient.
  void add(T a, matrix_views<T, Device>& d) {
    if (!needs_gradient) return;
    with_form([&](auto form) {
      auto& sum = form.write(*gradient);
      if (written)
        zip(sum, form.read(d), sum, base::linear_combination<T>{1, a});
      else if (a == T(1))
        copy(form.read(d), sum);
      else
        transform(form.read(d), sum, base::scaled<T>{a});
    });
    written = true;
  }
  /// The gradient, to be added to; 0 if not yet written.
  matrix_views<T, Device>& sum() {
    if (!written) with_form([&](auto form) { fill(form.write(*gradient), T(0)); });
    written = true;
    return *gradient;
  }
};

/// A verb on a tape.
template <class T, class Device>
class node {
 public:
  using slot = detail::slot<T, Device>;
  using views = matrix_views<T, Device>;

  node(std::vector<slot*> from, slot& to) : from_(std::move(from)), to_(to) {}
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  virtual ~node() = default;

  /// Called before the forward of any node.
  virtual void begin(const step&) {}
  virtual void forward() = 0;
  /// Computes the gradients of its inputs from the gradient of its result.
  virtual void backward() = 0;
  /// What this rank receives in forward, and in backward.
  virtual traffic predicted_forward() const { return {}; }
  virtual traffic predicted_backward() const { return {}; }

  /// Whether the next verb was fused into this pass: a bias, max(z, 0), a dropout with the mask of `drop`, or
  /// the sum with the previous contents of its memory.
  virtual bool take_bias(slot&) { return false; }
  virtual bool take_relu() { return false; }
  virtual bool take_dropout(std::function<dropout_mask()>) { return false; }
  virtual bool take_sum() { return false; }
  /// Whether its pass now ends with the ReLU and the dropout of `behind`, as they are in each forward.
  virtual bool end_with(const epilogue<T, Device>& /*behind*/) { return false; }
  /// Whether the result is a matrix; that of a loss is a number.
  virtual bool computes() const { return true; }
  /// Whether its backward needs its result.
  virtual bool keeps_output() const { return true; }
  /// Whether dropout may be applied to its result in place.
  virtual bool allows_dropout() const { return !keeps_output(); }
  /// Whether it reads its first input in the form h in which it was given; and whether it then makes slices
  /// from slices.
  virtual bool reads_as_given(const algebra::operand<T, Device>& /*h*/) const { return false; }
  virtual bool hands_on_slices() const { return false; }
  /// Whether its backward reads its inputs.
  virtual bool reads_again() const { return true; }
  /// Whether its backward overwrites the gradient of its result.
  virtual bool overwrites_gradient() const { return false; }
  /// Called once, when all nodes are known and before memory is allocated: decides whether it works in the
  /// memory of its input, and what is fused.
  virtual void settle() {}

  /// The node in whose pass it is computed.
  node& performer() { return fused_into_ == nullptr ? *this : fused_into_->performer(); }
  /// Its place in the order of nodes.
  std::size_t number() const { return number_; }
  void be_number(std::size_t number) { number_ = number; }
  const std::vector<slot*>& from() const { return from_; }
  slot& to() const { return to_; }

 protected:
  slot& in(std::size_t k = 0) const { return *from_[k]; }
  /// Whether this node is the only reader of x, and thus may overwrite it.
  bool alone_reads(const slot& x, bool drops = false) const {
    return x.uses == 1 && x.producer != nullptr && x.varies == to_.varies &&
           (drops ? x.producer->allows_dropout() : !x.producer->keeps_output());
  }
  /// The node in whose pass input k is computed.
  node* maker(std::size_t k = 0) const {
    node* const p = in(k).producer;
    return p == nullptr ? p : &p->performer();
  }
  void fuse_into(node* other) { fused_into_ = other; }
  bool fused() const { return fused_into_ != nullptr; }

 private:
  std::vector<slot*> from_;
  slot& to_;
  std::size_t number_ = 0;
  node* fused_into_ = nullptr;
};

/// A loss on a tape: a number whose verb also computes its gradient, in the same pass.
template <class T, class Device>
class loss_node : public node<T, Device> {
 public:
  using node<T, Device>::node;

  bool computes() const final { return false; }
  double value() const { return value_; }
  /// The factor of this loss in the sum that backward starts from.
  double weight() const { return weight_; }
  void weigh(double weight) { weight_ = weight; }

 protected:
  double value_ = 0, weight_ = 1;
};

}  // namespace detail

/// A matrix on a tape: a handle, valid as long as the tape. Verbs on variables only record; none computes.
template <class T, class Device>
class variable {
 public:
  matrix_shape shape() const { return slot_->at.shape(); }
  partita::layout layout() const { return slot_->at.layout; }
  const blocking& row_blocking() const { return slot_->at.rows; }
  const blocking& col_blocking() const { return slot_->at.cols; }
  bool needs_gradient() const { return slot_->needs_gradient; }
  /// The tape that recorded it.
  autodiff::tape<T, Device>& on() const { return *tape_; }

 private:
  friend class autodiff::tape<T, Device>;
  variable(autodiff::tape<T, Device>& t, detail::slot<T, Device>& s) : tape_(&t), slot_(&s) {}

  autodiff::tape<T, Device>* tape_;
  detail::slot<T, Device>* slot_;
};

/// An edge matrix on a tape (entries x columns, in the order of the pattern's tiles): a handle, like a
/// variable.
template <class T, class Device>
class edge_variable {
 public:
  explicit edge_variable(variable<T, Device> of) : of_(of) {}

  local_index columns() const { return static_cast<local_index>(of_.shape().cols); }
  const sparse<T, dynamic_layout, Device>& pattern() const {
    return *autodiff::tape<T, Device>::slot_of(of_).pattern;
  }
  bool needs_gradient() const { return of_.needs_gradient(); }
  autodiff::tape<T, Device>& on() const { return of_.on(); }

  /// For verbs: its variable on the tape.
  variable<T, Device> recorded() const { return of_; }

 private:
  variable<T, Device> of_;
};

/// A loss on a tape, or a weighted sum of losses: a handle, valid as long as the tape.
template <class T, class Device>
class scalar {
 public:
  using node = detail::loss_node<T, Device>;

  scalar(node& of) : terms_{{1, &of}} {}

  /// The number in the last forward, the same on every rank.
  double value() const {
    double sum = 0;
    for (const auto& [weight, of] : terms_) sum += weight * of->value();
    return sum;
  }
  /// The losses and their weights.
  const std::vector<std::pair<double, node*>>& terms() const { return terms_; }

  friend scalar operator+(scalar a, const scalar& b) {
    a.terms_.insert(a.terms_.end(), b.terms_.begin(), b.terms_.end());
    return a;
  }
  friend scalar operator*(double factor, scalar a) {
    for (auto& term : a.terms_) term.first *= factor;
    return a;
  }

 private:
  std::vector<std::pair<double, node*>> terms_;
};

}  // namespace partita::autodiff
