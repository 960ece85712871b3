// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The stages of a pipeline, or the placement of mini-batches, with which training costs least.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "partita/train/choose_policy.hpp"
#include "partita/train/make_training.hpp"

namespace partita::nn {

/// What a pipeline is chosen from.
struct stage_search {
  std::vector<int> stages;        ///< S; the ranks of each form one of the policies' meshes
  std::vector<int> chunks = {0};  ///< pipeline_options::chunks; 0: four per stage
  policy_search inside = {};  ///< policies and meshes of a stage, whose chunks have an exchange of their own
  /// pipeline_options::chunk_of for a number of chunks and the mesh of a stage; none: as the options say.
  std::function<std::vector<int>(const pipeline_options&, mesh_shape)> chunk_of = {};
};

namespace detail {

/// Policies and meshes, with an exchange of their own.
inline std::vector<policy_candidate> arrangements_of(policy_search from, int ranks) {
  from.exchanges = {}, from.stationaries = {}, from.chunks = {};
  return candidates_of(from, {}, ranks);
}

/// Chooses from candidates that are set up, each on a mesh of its own.
template <class T, class MakeMesh>
policy_choice choose_set_up(int ranks, const MakeMesh& make_mesh, const io::dataset& data,
                            const training_options& options, std::vector<policy_candidate> all,
                            const policy_search& from, const auto& completed) {
  if (data.task == io::task::links)
    throw error("links are predicted on whole graphs, without stages and batches");
  const auto tried = std::ranges::count(all, std::string_view(), &policy_candidate::same_as);
  global_index done = 0;
  for (policy_candidate& k : all) {
    if (!k.same_as.empty()) continue;
    const auto m = make_mesh(k.stages > 0 ? mesh_shape{ranks, 1, 1} : k.mesh);
    training_options asked = options_of(k, options);
    asked.pipeline.exact_epochs = 0, asked.pipeline.on_divergence = guard_action::report;
    completed(asked.pipeline, k.mesh);
    const int of_entries = k.stages > 0 ? k.mesh.size() : k.mesh.size(k.policy.sparse.used());
    k.cost =
        cost_of<T>(m, data, of_entries, [&] { return make_training<T>(m, data, asked, k.policy, k.mesh); });
    if (from.observe) from.observe(++done, tried);
  }
  const policy_candidate& chosen = detail::choose(all, from.most_bytes);
  policy_choice choice{chosen.policy, chosen.mesh, {}};
  choice.candidates = std::move(all);
  return choice;
}

}  // namespace detail

/// Makes meshes of a machine whose kernels are measured, of as many ranks as `world` has, with a thread and
/// near memory each, and a queue for each mesh. Nothing of `world` but its messages is used. Collective over
/// `world`. Throws as emulated::cluster and emulated::charged.
template <class Device>
auto meshes_on(const communicator& world, const emulated::machine& on) {
  return [ranks = emulated::cluster(communicator(world.transport(), world.axis()), on)](mesh_shape shape) {
    return mesh<Device>(ranks, shape, emulated::charged(ranks, device_queue<Device>(1)));
  };
}

/// The number of stages, of chunks, and the policy and mesh inside a stage, that cost least: as choose_policy
/// chooses, of pipelines. make_mesh(shape) makes a mesh of these ranks, such as meshes_on. Each candidate is
/// set up: words are those of an epoch's step, exactly; bytes the peak of the set-up and, on a machine whose
/// kernels are measured, of the two epochs that are rehearsed for the seconds, with history. Every rank must
/// call. What travels: see pipeline_trainer. Throws budget_error where none fits, and what pipeline_trainer
/// throws.
template <class T, class MakeMesh>
policy_choice choose_stages(int ranks, const MakeMesh& make_mesh, const io::dataset& data,
                            const training_options& options, const stage_search& from) {
  std::vector<policy_candidate> all;
  for (const int stages : from.stages) {
    if (stages < 1 || ranks % stages != 0)
      base::throw_error<mesh_error>({ranks, " ranks are not ", stages, " stages of equally many"});
    for (const policy_candidate& inside : detail::arrangements_of(from.inside, ranks / stages))
      for (const int chunks : from.chunks) {
        policy_candidate& k = all.emplace_back(inside);
        k.stages = stages, k.stage_chunks = chunks;
      }
  }
  return detail::choose_set_up<T>(ranks, make_mesh, data, options, std::move(all), from.inside,
                                  [&](pipeline_options& how, mesh_shape inside) {
                                    if (from.chunk_of) how.chunk_of = from.chunk_of(how, inside);
                                  });
}

/// The placement of mini-batches under which an epoch takes least time on a machine whose kernels are
/// measured; the one that the options name, or each that the model can have. `from`: the policy, of the
/// evaluation alone, its mesh, and what buffers may take. make_mesh(shape) makes a mesh of these ranks with a
/// queue of its own, such as meshes_on. Each candidate is set up, and two epochs are rehearsed, whose samples
/// are drawn, which takes no time there: words, exactly, and seconds are those of the second one. Every rank
/// must call. What travels: see mini_batch_trainer. Throws budget_error where none fits, error where kernels
/// are not measured, and what mini_batch_trainer throws.
template <class T, class MakeMesh>
policy_choice choose_placement(int ranks, const MakeMesh& make_mesh, const io::dataset& data,
                               const training_options& options, const policy_search& from) {
  using enum sampling::placement;
  const bool slices = [&]<class Device>(const mesh<Device>& m) {
    if (!emulated::measures_kernels(m.world()))
      throw error("placements are compared on a machine whose kernels are measured");
    return find_model<T, Device>(options).on_blocks.slices;
  }(make_mesh(mesh_shape{ranks, 1, 1}));
  std::vector<policy_candidate> all;
  for (const policy_candidate& of : detail::arrangements_of(from, ranks))
    for (const sampling::placement how : {owner, even, column_gather, column}) {
      const sampling::placement given = options.mini_batch.placement;
      if (given == automatic ? how == column && !slices : how != given) continue;
      all.emplace_back(of).placement = how;
    }
  return detail::choose_set_up<T>(ranks, make_mesh, data, options, std::move(all), from,
                                  [](const pipeline_options&, mesh_shape) {});
}

}  // namespace partita::nn
