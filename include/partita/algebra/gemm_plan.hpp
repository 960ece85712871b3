// SPDX-License-Identifier: Apache-2.0
#pragma once
/// C = alpha op(A) op(B) + beta C of distributed dense matrices, planned once: one rule for every layout.

#include <memory>
#include <optional>

#include "partita/algebra/gemm_operand.hpp"
#include "partita/algebra/partial_products.hpp"
#include "partita/transfer/block_exchange.hpp"

namespace partita {

/// How a product is computed.
struct gemm_options {
  /// The axes that partition the three indices; by default the choice whose busiest rank receives least.
  std::optional<partition::gemm_schedule> schedule = {};
  /// Bytes that the buffers of a rank may take. By default the size of C, A and B together there, at least 1
  /// MiB, and more only if every schedule needs more.
  std::optional<std::size_t> memory = {};
};

/// A planned C = alpha op(A) op(B) + beta C (m x n = m x k times k x n), op(X) = X or X^T; any layouts and
/// blockings on one mesh.
///
/// C(i, j) = sum over k of A(i, k) B(k, j) has three indices; a schedule assigns each mesh axis to i, to j,
/// to k or to none. A is redistributed to (I, K) and B to (K, J), blocks are multiplied, and partial sums
/// over the axes of K are reduce-scattered into the layout of C, or all-reduced if C is replicated. If the
/// buffers would exceed the memory, blocks are received in stages along k, the next one in flight while one
/// is multiplied, or along j or i if partial sums take most of it. 1D, SUMMA, 2.5D and 3D algorithms are
/// choices among the schedules.
///
/// Collective over the mesh: constructor and call. What travels: predicted(). The first call with beta != 0
/// may allocate; further calls never do. Throws shape_error naming operands and shapes, and error if the
/// memory given is too small.
///
/// Sources: SUMMA: van de Geijn, Watts (1997); the assignment of indices to axes: Schatz, van de Geijn,
/// Poulson (SISC 2016); the optimal grid: Kwasniewski et al. (SC19).
template <class T, class Device>
class gemm_plan {
  using operand = algebra::detail::gemm_operand<T, Device>;

 public:
  /// For matrices like these; a and b may be transposed().
  template <algebra::detail::multiplicand A, algebra::detail::multiplicand B, layout L>
  gemm_plan(const A& a, const B& b, const dense<T, L, Device>& c, gemm_options options = {},
            std::source_location where = std::source_location::current())
      : gemm_plan(comm::call_site(where), operand(a), operand(b), operand(c), options) {}

  /// c = op(a) op(b).
  template <algebra::detail::multiplicand A, algebra::detail::multiplicand B, layout L>
  void operator()(const A& a, const B& b, dense<T, L, Device>& c,
                  std::source_location where = std::source_location::current()) {
    (*this)(1, a, b, 0, c, where);
  }
  /// c = alpha op(a) op(b) + beta c; beta = 0 overwrites c.
  template <algebra::detail::multiplicand A, algebra::detail::multiplicand B, layout L>
  void operator()(std::type_identity_t<T> alpha, const A& a, const B& b, std::type_identity_t<T> beta,
                  dense<T, L, Device>& c, std::source_location where = std::source_location::current()) {
    const comm::call_site scope(where);
    const operand left(a), right(b);
    require_planned(left, right, operand(c));
    multiply(alpha, left.local, right.local, beta, c.local());
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const { return predicted_; }
  /// Bytes in the buffers of the busiest rank.
  std::size_t buffer_bytes() const { return static_cast<std::size_t>(choice_.buffered) * sizeof(T); }
  partition::gemm_schedule schedule() const { return choice_.blocks.axes; }
  partition::gemm_stages stages() const { return choice_.blocks.stages; }
  /// The schedule, what it moves and what it costs, in a sentence.
  std::string explain() const;

 private:
  gemm_plan(const comm::call_site&, const operand& a, const operand& b, const operand& c,
            const gemm_options& options);

  static partition::gemm_problem problem_of(const operand& a, const operand& b, const operand& c);
  static partition::gemm_choice chosen(const partition::gemm_problem& p, const gemm_options& options);
  void require_planned(const operand& a, const operand& b, const operand& c) const;
  void multiply(T alpha, matrix_view<const T> a, matrix_view<const T> b, T beta, matrix_view<T> c);
  void move_sums(T beta, matrix_view<T> c);

  /// Whether this rank adds beta C to a sum over ranks.
  bool adds_old() const {
    return partition::rank_in_group(problem_.mesh, choice_.sums.reduce, mesh_.at()) == 0;
  }

  mesh<Device> mesh_;
  partition::gemm_problem problem_;
  partition::gemm_choice choice_;
  std::unique_ptr<transfer::block_exchange<T, Device>> a_, b_, c_;
  std::unique_ptr<algebra::detail::partial_products<T, Device>>
      sums_;  ///< null if products are computed in C
  traffic predicted_;
};

template <algebra::detail::multiplicand A, algebra::detail::multiplicand B, class C, class... Options>
gemm_plan(const A&, const B&, const C&, Options...)
    -> gemm_plan<algebra::detail::element_of_operand<A>, algebra::detail::device_of_operand<A>>;

template <class T, class Device>
partition::gemm_problem gemm_plan<T, Device>::problem_of(const operand& a, const operand& b,
                                                         const operand& c) {
  if (!(*a.mesh == *b.mesh))
    base::throw_error<shape_error>(
        {"gemm: A of ", a.blocks.shape(), " and B of ", b.blocks.shape(), " are not on one mesh"});
  if (!(*a.mesh == *c.mesh))
    base::throw_error<shape_error>(
        {"gemm: A of ", a.blocks.shape(), " and C of ", c.blocks.shape(), " are not on one mesh"});
  if (a.shape().cols != b.shape().rows)
    base::throw_error<shape_error>(
        {"gemm: ", a.described("A"), " cannot be multiplied by ", b.described("B")});
  if (!(c.shape() == matrix_shape{a.shape().rows, b.shape().cols}))
    base::throw_error<shape_error>({"gemm: ", a.described("A"), " times ", b.described("B"), " is ",
                                    matrix_shape{a.shape().rows, b.shape().cols}, ", not C of ", c.shape()});
  return {a.mesh->shape(), a.blocks, b.blocks, c.blocks, a.transposed, b.transposed};
}

template <class T, class Device>
partition::gemm_choice gemm_plan<T, Device>::chosen(const partition::gemm_problem& p,
                                                    const gemm_options& options) {
  if (options.schedule && !partition::is_schedule(*options.schedule))
    base::throw_error<shape_error>(
        {"gemm: an axis partitions one of the three indices, not two as in ", *options.schedule});
  constexpr global_index least = (global_index{1} << 20) / sizeof(T);
  const global_index given = static_cast<global_index>(options.memory.value_or(0) / sizeof(T));
  const auto choice = partition::choose(
      p, options.memory ? given : std::max(partition::elements_of(p), least), options.schedule);
  if (options.memory && choice.buffered > given)
    base::throw_error<error>({"gemm: C of ", p.c.shape(), " needs at least ",
                              static_cast<std::size_t>(choice.buffered) * sizeof(T),
                              " bytes for buffers, not ", *options.memory});
  return choice;
}

template <class T, class Device>
gemm_plan<T, Device>::gemm_plan(const comm::call_site&, const operand& a, const operand& b, const operand& c,
                                const gemm_options& options)
    : mesh_(*a.mesh), problem_(problem_of(a, b, c)), choice_(chosen(problem_, options)) {
  using partition::exchange;
  const mesh_shape m = mesh_.shape();
  const coordinates at = mesh_.at();
  const partition::gemm_blocks& blocks = choice_.blocks;
  const partition::gemm_routes routes(problem_, blocks, choice_.sums);
  const partition::gemm_stages& stages = blocks.stages;
  const auto plan = [&](const partition::route& r, const partition::block_of_rank& from,
                        const partition::block_of_stage& to, global_index count) {
    auto planned =
        std::make_unique<transfer::block_exchange<T, Device>>(mesh_, exchange(m, r, at, from, to, count));
    predicted_ += planned->predicted();
    return planned;
  };
  a_ = plan(
      routes.a, [&](coordinates q) { return problem_.a.block(q); },
      [&](coordinates q, global_index s) { return blocks.of_a(q, s); },
      stages.without(partition::gemm_index::j));
  b_ = plan(
      routes.b, [&](coordinates q) { return problem_.b.block(q); },
      [&](coordinates q, global_index s) { return blocks.of_b(q, s); },
      stages.without(partition::gemm_index::i));
  a_->reserve();
  b_->reserve();
  if (const axis_set reduce = choice_.sums.reduce; !reduce.empty())
    predicted_ += mesh_.all_reduced(reduce, problem_.c.block(at).size());
  if (choice_.sums.scatter.empty() && !choice_.sums.redistributes) return;
  sums_ =
      std::make_unique<algebra::detail::partial_products<T, Device>>(mesh_, problem_, blocks, choice_.sums);
  predicted_ += sums_->predicted();
  if (choice_.sums.redistributes)
    c_ = plan(
        routes.c, [&](coordinates q) { return choice_.sums.owned(problem_, blocks, q); },
        [&](coordinates q, global_index) { return problem_.c.block(q); }, 1);
}

template <class T, class Device>
void gemm_plan<T, Device>::require_planned(const operand& a, const operand& b, const operand& c) const {
  const auto require = [](const char* name, const operand& given, const partition::block_layout& planned,
                          bool transposed) {
    if (given.blocks == planned && given.transposed == transposed) return;
    const auto shown = [name](const partition::block_layout& x, bool of_transpose) {
      return base::sentence_of(
          {of_transpose ? "the transpose of " : "", name, " of ", x.shape(), ", ", x.axes});
    };
    base::throw_error<shape_error>({"gemm planned for ", shown(planned, transposed), ", was given ",
                                    shown(given.blocks, given.transposed),
                                    "; shapes, layouts and blockings must match the plan"});
  };
  require("A", a, problem_.a, problem_.transposed_a);
  require("B", b, problem_.b, problem_.transposed_b);
  require("C", c, problem_.c, false);
  const auto empty = [](const auto& x) { return x.local.rows == 0 || x.local.cols == 0; };
  for (const operand* x : {&a, &b})
    if (x->local.data == c.local.data && !empty(*x) && !empty(c))
      base::throw_error<shape_error>({"gemm: C of ", c.blocks.shape(), " must not be the memory of A or B"});
}

template <class T, class Device>
void gemm_plan<T, Device>::multiply(T alpha, matrix_view<const T> a, matrix_view<const T> b, T beta,
                                    matrix_view<T> c) {
  const auto [along, count] = choice_.blocks.stages;
  const auto stages = static_cast<std::size_t>(count);
  const bool of_k = along == partition::gemm_index::k;
  const T old = adds_old() ? beta : T(0);
  matrix_view<const T> left, right;
  a_->start(0, a);
  b_->start(0, b);
  for (std::size_t s = 0; s < stages; ++s) {
    if (s < a_->stages()) left = a_->finish(s, a);
    if (s < b_->stages()) right = b_->finish(s, b);
    if (s + 1 < a_->stages()) a_->start(s + 1, a);
    if (s + 1 < b_->stages()) b_->start(s + 1, b);
    const bool continues = of_k && s > 0;
    if (sums_ == nullptr) {
      const partition::rectangle computed = choice_.blocks.of_c(mesh_.at(), static_cast<global_index>(s));
      local::chunked::gemm(mesh_.queue(), problem_.transposed_a, problem_.transposed_b, alpha, left, right,
                           continues ? T(1) : old,
                           transfer::part_of(c, choice_.blocks.of_c(mesh_.at()), computed));
      continue;
    }
    const std::size_t product = of_k ? 0 : s;
    sums_->multiply(product, alpha, left, right, continues ? T(1) : T(0));
    if (!choice_.sums.redistributes && (!of_k || s + 1 == stages)) sums_->scatter_into(product, old, c);
  }
  if (choice_.sums.redistributes) return move_sums(beta, c);
  if (choice_.sums.reduce.empty()) return;
  const auto size = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.cols);
  mesh_.along(choice_.sums.reduce).all_reduce(std::span<T>(c.data, size));
}

template <class T, class Device>
void gemm_plan<T, Device>::move_sums(T beta, matrix_view<T> c) {
  const matrix_view<const T> sums = sums_->sums();
  c_->start(0, sums);
  if (beta == 0) return c_->finish(0, sums, c);
  local::chunked::zip(mesh_.queue(), base::linear_combination<T>{1, beta}, c_->finish(0, sums),
                      matrix_view<const T>(c), c);
}

template <class T, class Device>
std::string gemm_plan<T, Device>::explain() const {
  const partition::gemm_routes routes(problem_, choice_.blocks, choice_.sums);
  const auto moved = [](const char* name, const partition::route& r) {
    if (r.group.empty()) return base::sentence_of({name, " stays"});
    return base::sentence_of(
        {name, r.kind == partition::movement::all_gather ? " is gathered along " : " is redistributed along ",
         partition::name_of(r.group)});
  };
  const auto& [scatter, reduce, redistributes] = choice_.sums;
  const auto [along, count] = choice_.blocks.stages;
  std::string in_stages, sums;
  if (count > 1) in_stages = base::sentence_of({", in ", count, " stages along ", partition::name_of(along)});
  if (!scatter.empty()) sums += ", partial sums are reduce-scattered along " + partition::name_of(scatter);
  if (!reduce.empty()) sums += ", sums are all-reduced along " + partition::name_of(reduce);
  if (redistributes) sums += ", C is redistributed";
  return base::sentence_of({"C of ", problem_.c.shape(), " with ", choice_.blocks.axes, ": ",
                            moved("A", routes.a), ", ", moved("B", routes.b), in_stages, sums,
                            "; the busiest rank receives ", choice_.words, " elements and holds ",
                            choice_.buffered, " in buffers"});
}

}  // namespace partita
