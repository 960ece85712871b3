// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The schedules of C = op(A) op(B): which mesh axes partition which of the three indices of
/// C(i, j) = sum over k of A(i, k) B(k, j), and what ranks then receive.

#include <cstdint>
#include <string>

#include "partita/partition/exchange.hpp"

namespace partita::partition {

/// The mesh axes that partition i, j and k. Ranks that differ only in the remaining axes compute the same.
struct gemm_schedule {
  axis_set i, j, k;

  friend constexpr bool operator==(gemm_schedule, gemm_schedule) = default;
};

/// Whether no axis partitions two indices.
constexpr bool is_schedule(gemm_schedule s) {
  return (s.i & s.j).empty() && (s.j & s.k).empty() && (s.k & s.i).empty();
}

inline std::string to_string(gemm_schedule s) {
  return base::sentence_of({"i by ", name_of(s.i), ", j by ", name_of(s.j), ", k by ", name_of(s.k)});
}

/// Operands and result of a product on a mesh; op transposes A (B) if `transposed_a` (`transposed_b`) is set.
struct gemm_problem {
  mesh_shape mesh;
  block_layout a, b, c;
  bool transposed_a = false, transposed_b = false;

  const blocking& i_of_a() const { return transposed_a ? a.cols : a.rows; }
  const blocking& k_of_a() const { return transposed_a ? a.rows : a.cols; }
  const blocking& k_of_b() const { return transposed_b ? b.cols : b.rows; }
  const blocking& j_of_b() const { return transposed_b ? b.rows : b.cols; }
};

/// An index of the product.
enum class gemm_index : std::uint8_t { i, j, k };

constexpr const char* name_of(gemm_index x) {
  return x == gemm_index::i ? "i" : x == gemm_index::j ? "j" : "k";
}

/// The parts of one index that ranks traverse one after the other.
struct gemm_stages {
  gemm_index along = gemm_index::k;
  global_index count = 1;

  /// The number of different blocks of a matrix that lacks `index`.
  constexpr global_index without(gemm_index index) const { return along == index ? 1 : count; }
};

/// The blocks that ranks multiply under a schedule.
struct gemm_blocks {
  gemm_schedule axes;
  blocking i, j, k;
  bool transposed_a, transposed_b;
  gemm_stages stages = {};

  static constexpr global_index every = -1;  ///< all stages together

  /// This rank's range of an index in one stage.
  interval range(gemm_index x, coordinates at, global_index stage = every) const {
    const interval whole = x == gemm_index::i   ? i.block(axes.i, at)
                           : x == gemm_index::j ? j.block(axes.j, at)
                                                : k.block(axes.k, at);
    return stage == every || x != stages.along ? whole : base::part_of(whole, stage, stages.count);
  }
  rectangle of_a(coordinates at, global_index stage = every) const {
    return oriented({range(gemm_index::i, at, stage), range(gemm_index::k, at, stage)}, transposed_a);
  }
  rectangle of_b(coordinates at, global_index stage = every) const {
    return oriented({range(gemm_index::k, at, stage), range(gemm_index::j, at, stage)}, transposed_b);
  }
  rectangle of_c(coordinates at, global_index stage = every) const {
    return {range(gemm_index::i, at, stage), range(gemm_index::j, at, stage)};
  }

 private:
  static rectangle oriented(rectangle r, bool transposed) {
    return transposed ? rectangle{r.cols, r.rows} : r;
  }
};

/// How partial products become C: reduce-scattered along `scatter` and summed on every rank of `reduce`. The
/// ranks then own blocks of C itself or, where C's layout does not refine the blocks of the product, shares
/// of the rows of these blocks, which are redistributed.
struct gemm_sums {
  axis_set scatter, reduce;
  bool redistributes = false;

  /// The part of a stage's product that the rank owns after the sums.
  rectangle owned(const gemm_problem& p, const gemm_blocks& blocks, coordinates at,
                  global_index stage = gemm_blocks::every) const {
    if (!redistributes) return intersection(p.c.block(at), blocks.of_c(at, stage));
    const rectangle whole = blocks.of_c(at);
    return {base::part_of(whole.rows, rank_in_group(p.mesh, scatter, at), p.mesh.size(scatter)), whole.cols};
  }
};

/// The sums of a schedule.
inline gemm_sums sums_of(const gemm_problem& p, const gemm_blocks& blocks) {
  axis_set summed;
  for (const axis a : all_axes)
    if (blocks.axes.k.contains(a) && p.mesh[a] > 1) summed = summed | a;
  const gemm_sums refining{summed & p.c.axes.used(), summed - p.c.axes.used(), false};
  for (int rank = 0; rank < p.mesh.size(); ++rank) {
    const coordinates at = p.mesh.at(rank);
    const rectangle product = blocks.of_c(at);
    global_index covered = 0;
    for (int q = 0; q < p.mesh.size(refining.scatter); ++q)
      covered += intersection(p.c.block(group_member(p.mesh, refining.scatter, at, q)), product).size();
    if (covered != product.size() || intersection(p.c.block(at), product).size() != p.c.block(at).size())
      return {summed, {}, true};
  }
  return refining;
}

/// What one rank receives in a product, by matrix.
struct gemm_words {
  global_index a = 0, b = 0, c = 0;

  global_index sum() const { return a + b + c; }
};

/// |A(I, K)| and |B(K, J)| less what the rank owns of them; for C the sums, and the redistribution after
/// them.
inline gemm_words words_of(const gemm_problem& p, const gemm_blocks& blocks, const gemm_sums& sums,
                           coordinates at) {
  const auto missing = [](rectangle wanted, rectangle owned) {
    return wanted.size() - intersection(wanted, owned).size();
  };
  const rectangle kept = sums.owned(p, blocks, at);
  const global_index others = p.mesh.size(sums.reduce) - 1;
  gemm_words w{missing(blocks.of_a(at), p.a.block(at)), missing(blocks.of_b(at), p.b.block(at)),
               (p.mesh.size(sums.scatter) - 1) * kept.size()};
  if (others > 0) {
    const global_index share =
        base::part_of(interval{0, kept.size()}, rank_in_group(p.mesh, sums.reduce, at), others + 1).size();
    w.c += others * share + kept.size() - share;
  }
  if (sums.redistributes) w.c += missing(p.c.block(at), kept);
  return w;
}

}  // namespace partita::partition
