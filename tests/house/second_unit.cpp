#include "everything.hpp"

int in_the_second_unit();

int in_the_second_unit() { return 0; }
