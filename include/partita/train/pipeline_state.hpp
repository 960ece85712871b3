// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What training over stages goes on from: the state of one model, cut and put together.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partita/train/pipeline_link.hpp"
#include "partita/train/stage_layers.hpp"
#include "partita/train/training_state.hpp"

namespace partita::nn {

/// The parameters of all stages, under the names that they have on the whole graph. `set`: those of this
/// rank's stage. Collective over the line. What travels: names and shapes, between stages.
template <class T, class Device>
std::vector<named_shape> shapes_of_stages(const pipeline_link<T, Device>& line, parameters<T, Device>& set) {
  std::vector<std::uint8_t> names;
  std::vector<global_index> numbers;
  for (const auto& [name, shape] : shapes_of(set)) {
    names.insert(names.end(), name.begin(), name.end());
    numbers.insert(numbers.end(), {std::ssize(name), shape.rows, shape.cols});
  }
  names = line.of_all_stages(names);
  numbers = line.of_all_stages(numbers);
  std::vector<named_shape> all;
  auto begin = names.begin();
  for (std::size_t k = 0; k < numbers.size(); k += 3) {
    all.push_back({std::string(begin, begin + numbers[k]), {numbers[k + 1], numbers[k + 2]}});
    begin += numbers[k];
  }
  return all;
}

/// The state of all stages, on every rank. `set`, `optimizer`: those of this rank's stage. Collective over
/// the line. What travels: names, parameters and moments, between stages.
template <class T, class Device>
training_state<T> state_of_stages(const pipeline_link<T, Device>& line, parameters<T, Device>& set,
                                  adam<T, Device>& optimizer) {
  training_state<T> now = state_of(set, optimizer);
  for (std::vector<T>* const list :
       {&now.of_parameters.values, &now.of_parameters.first, &now.of_parameters.second})
    *list = line.of_all_stages(*list);
  now.parameters = shapes_of_stages(line, set);
  return now;
}

/// This rank's stage goes on from the state of the first rank of `world`. Collective over `world`. What
/// travels: see state_of_stages and broadcast_parameters. Throws error, on the first rank, for the state of
/// another model.
template <class T, class Device>
void restore_stage(const communicator& world, const pipeline_link<T, Device>& line, const stage_place& place,
                   training_state<T>& from, parameters<T, Device>& set, adam<T, Device>& optimizer) {
  const std::vector<named_shape> wanted = shapes_of_stages(line, set);
  if (world.rank() == 0) require_parameters(from, wanted);
  broadcast_parameters(world, from);
  assign_parameters(from, place.weights_before(place.first), set, optimizer);
}

}  // namespace partita::nn
