// SPDX-License-Identifier: Apache-2.0
#include "everything.hpp"  // nothing in it that two units may not both define
