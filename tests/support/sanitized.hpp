// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace partita {}

namespace test_support {

using namespace partita;  // so that a test that uses test_support uses partita, too

/// Sanitizers are slow and look at the code, not at the numbers: they see fewer ranks and sizes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace test_support
