// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The operating system behind one interface, partita::base::system, for what needs POSIX at least (what does
/// not is in base/processor.hpp): all that Linux offers, elsewhere what POSIX has. PARTITA_POSIX_ONLY chooses
/// the latter on Linux, too; it must then be defined for every object of a program, compiled libraries
/// included, since inline functions differ by it.

#if defined(__linux__) && !defined(PARTITA_POSIX_ONLY)
#include "partita/base/linux_system.hpp"

namespace partita::base {
namespace system = on_linux;
}  // namespace partita::base
#else
#include "partita/base/posix_system.hpp"

namespace partita::base {
namespace system = on_posix;
}  // namespace partita::base
#endif
