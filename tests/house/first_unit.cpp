#include "everything.hpp"

int in_the_second_unit();

int main() { return in_the_second_unit(); }
