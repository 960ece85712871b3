// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace partita {}

namespace test_support {

using namespace partita;  // so that a test that uses test_support uses partita, too

/// Sanitizers are slow and look at the code, not at the numbers: tests see fewer ranks and sizes. GCC says by
/// a macro that it sanitizes, clang by a feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// Whether tests see fewer meshes: under sanitizers, but for tests that run nowhere else.
bool sees_fewer_meshes();

}  // namespace test_support
