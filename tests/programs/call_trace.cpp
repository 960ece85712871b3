// SPDX-License-Identifier: Apache-2.0
// Writes, at the end of a program compiled with -finstrument-functions-after-inlining, the stack at the first
// call of each function, from the outermost on: a line for each, into the file that PARTITA_CALL_TRACE names,
// of distances from __cyg_profile_func_enter. Threads begin with an empty stack.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_set>
#include <vector>

extern "C" void __cyg_profile_func_enter(void* function, void*);

namespace {

/// Whether this thread is in this unit, whose calls are not traced.
thread_local bool inside = false;
thread_local std::vector<void*>* stack = nullptr;  // never freed: functions are called until the thread ends

template <class Work>
[[gnu::no_instrument_function]] void apart(const Work& work) {
  if (inside) return;
  inside = true;
  work();
  inside = false;
}

struct trace {
  std::mutex guard;
  std::unordered_set<void*> seen;
  std::vector<std::vector<void*>> stacks;

  static trace& of_program() {
    static trace& all = *new trace;
    return all;
  }
  trace() {
    std::atexit([] { apart(write); });
  }

  static void write() {
    const char* const path = std::getenv("PARTITA_CALL_TRACE");
    std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    const auto* const here = reinterpret_cast<char*>(&__cyg_profile_func_enter);
    for (const std::vector<void*>& stack : of_program().stacks) {
      for (const void* const function : stack)
        std::fprintf(file, "%td ", static_cast<const char*>(function) - here);
      std::fputc('\n', file);
    }
    std::fclose(file);
  }
};

}  // namespace

extern "C" {

[[gnu::no_instrument_function]] void __cyg_profile_func_enter(void* function, void*) {
  apart([&] {
    if (stack == nullptr) stack = new std::vector<void*>;
    stack->push_back(function);
    trace& all = trace::of_program();
    const std::lock_guard lock(all.guard);
    if (all.seen.insert(function).second) all.stacks.push_back(*stack);
  });
}
[[gnu::no_instrument_function]] void __cyg_profile_func_exit(void*, void*) {
  apart([] {
    if (stack != nullptr && !stack->empty()) stack->pop_back();
  });
}

}  // extern "C"
