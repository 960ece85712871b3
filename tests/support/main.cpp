// SPDX-License-Identifier: Apache-2.0
// The main of tests that need no launcher.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>

#include "support/honest_run.hpp"

REGISTER_LISTENER("honest_run", 0, test_support::run_listener);

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int code = context.run();
  if (context.shouldExit() || code != 0) return code;
  const test_support::run_account& account = test_support::run_account::instance();
  if (account.honest()) return 0;
  std::fprintf(stderr, "FAILED: %s\n", account.text().c_str());
  return 1;
}
