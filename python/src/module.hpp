// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of the module.

#include <memory>
#include <nanobind/nanobind.h>
#include <string>

#include "partita/io/dataset_type.hpp"
#include "partita/version.hpp"

namespace partita::python {

inline std::string version_text() {
  return std::to_string(version::major) + "." + std::to_string(version::minor) + "." +
         std::to_string(version::patch);
}

/// What is read of a data directory, or of karate, which is built in, for training or for prediction;
/// `embedding`: without features. Every process must call. What travels and exceptions: as io::load_dataset.
std::shared_ptr<const io::dataset> load(const std::string& path, const std::string& task, bool trains,
                                        bool embedding, global_index vertices);

void bind_products(nanobind::module_& m);
void bind_dataset(nanobind::module_& m);
void bind_training(nanobind::module_& m);

}  // namespace partita::python
