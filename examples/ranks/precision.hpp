// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The precisions that these programs are built with, PARTITA_PRECISIONS of CMake.

#include <string>

#include "partita/base/error.hpp"

#ifdef PARTITA_WITH_F32
inline constexpr bool has_f32 = true;
#else
inline constexpr bool has_f32 = false;
#endif
#ifdef PARTITA_WITH_F64
inline constexpr bool has_f64 = true;
#else
inline constexpr bool has_f64 = false;
#endif

/// Throws error if the programs were built without it.
inline void require_precision(const std::string& name) {
  if (name == "f64" ? !has_f64 : !has_f32)
    throw partita::error("this program was built without --precision " + name +
                         "; `cmake --preset release && cmake --build --preset release --target train "
                         "predict` builds both in build/release/examples");
}

/// run(T()) of the type named. Throws as require_precision does.
template <class F>
auto in_precision(const std::string& name, const F& run) {
  require_precision(name);
  if constexpr (has_f32 && has_f64)
    return name == "f64" ? run(double()) : run(float());
  else if constexpr (has_f64)
    return run(double());
  else
    return run(float());
}
