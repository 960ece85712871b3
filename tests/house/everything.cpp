#include "everything.hpp"  // nothing in it that two units may not both define
