// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of the module.

#include <nanobind/nanobind.h>
#include <string>

#include "partita/version.hpp"

namespace partita::python {

inline std::string version_text() {
  return std::to_string(version::major) + "." + std::to_string(version::minor) + "." +
         std::to_string(version::patch);
}

void bind_products(nanobind::module_& m);
void bind_dataset(nanobind::module_& m);
void bind_training(nanobind::module_& m);
void bind_prediction(nanobind::module_& m);

}  // namespace partita::python
