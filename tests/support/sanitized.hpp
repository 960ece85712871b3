// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace partita {}

namespace test_support {

using namespace partita;  // so that a test that uses test_support uses partita, too

/// The thread sanitizer is slow and looks at the code, not at the numbers: it sees fewer ranks and sizes.
/// With the address sanitizer all are tested.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// The address sanitizer ends a program that asks for more memory than there can be, instead of throwing.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool memory_is_checked = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool memory_is_checked = true;
#else
inline constexpr bool memory_is_checked = false;
#endif
#else
inline constexpr bool memory_is_checked = false;
#endif

}  // namespace test_support
