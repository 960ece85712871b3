// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The version of the library. Within one minor version, a newer patch compiles what an older one did.

namespace partita::version {

inline constexpr int major = 0;
inline constexpr int minor = 2;
inline constexpr int patch = 0;

}  // namespace partita::version
