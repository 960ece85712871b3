// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every main of the tests adds to doctest: a run that skips a test case, or runs none, has failed.
// Include in one translation unit per program, after doctest's implementation.
#include <doctest/doctest.h>
#include <string>

namespace test_support {

/// What happened in the run of this program.
struct run_account {
  unsigned skipped = 0, ran = 0;

  static run_account& instance() {
    static run_account account;
    return account;
  }
  bool honest() const { return skipped == 0 && ran > 0; }
  std::string text() const {
    return std::to_string(ran) + " test cases ran, " + std::to_string(skipped) + " were skipped";
  }
};

/// Listens to doctest. Test cases left out by a filter on the command line were not asked for: not skipped.
struct run_listener : doctest::IReporter {
  explicit run_listener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override { ++run_account::instance().ran; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (test.m_skip) ++run_account::instance().skipped;
  }
};

}  // namespace test_support
