// SPDX-License-Identifier: Apache-2.0
// The functions between spmm(a, x) and its innermost loop on the host, from a trace of calls: at most 19, and
// those that docs/design.md names, in this order. Lambdas and function_reference only pass on. Compiled with
// -finstrument-functions and without optimisation. Usage: call_walk docs/design.md
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <partita/partita.hpp>
using namespace partita;

namespace {

constexpr std::size_t most_frames = 500, most_functions = 19;
constexpr char innermost[] = "_ZNK7partita7on_host12strip_detail5strip";

bool recording = false;
std::array<void*, most_frames> stack, found;
std::size_t depth = 0, found_depth = 0;

}  // namespace

extern "C" {

[[gnu::no_instrument_function]] void __cyg_profile_func_enter(void* function, void*) {
  if (!recording || depth == most_frames) return;
  recording = false;
  stack[depth++] = function;
  Dl_info info;
  if (found_depth == 0 && dladdr(function, &info) != 0 && info.dli_sname != nullptr &&
      std::strncmp(info.dli_sname, innermost, sizeof innermost - 1) == 0)
    found = stack, found_depth = depth;
  recording = true;
}
[[gnu::no_instrument_function]] void __cyg_profile_func_exit(void*, void*) {
  if (recording && depth > 0) --depth;
}

}  // extern "C"

namespace {

std::string name_of(void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_sname == nullptr) return "lambda";
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr), &std::free);
  return name ? name.get() : "lambda";  // of a lambda in a lambda the demangler knows no name
}

/// Without arguments, those of templates and of functions; "()" for operator().
std::string without_arguments(const std::string& name) {
  std::string plain;
  int open = 0;
  for (std::size_t k = 0; k < name.size(); ++k) {
    if (open == 0 && name.compare(k, 10, "operator()") == 0) {
      plain += "()", k += 9;
      continue;
    }
    const bool opens = name[k] == '<' || name[k] == '(', closes = name[k] == '>' || name[k] == ')';
    open += opens ? 1 : 0;
    if (open == 0) plain += name[k];
    open -= closes ? 1 : 0;
  }
  return plain;
}

/// "spmm_plan" for partita::spmm_plan::(), "multiply" for a function of that name; none for what only passes
/// on.
std::string short_name(std::string plain) {
  if (plain.find("lambda") != std::string::npos || plain.find("function_reference") != std::string::npos)
    return "";
  if (const std::size_t call = plain.find("::()"); call != std::string::npos) plain.resize(call);
  plain.resize(plain.find_last_not_of(' ') + 1);
  if (plain.ends_with(" const")) plain.resize(plain.size() - 6);
  return plain.substr(plain.find_last_of(": ") + 1);
}

}  // namespace

int main(int, char** arguments) {
  const mesh<host> m(self::world(), mesh_shape{});
  const std::vector<triplet<float>> entries{{0, 0, 1}, {1, 2, 2}, {2, 1, 3}};
  const auto a = distribute(m, row_1d, {3, 3}, entries);  // (3, 3)
  const global_index width = on_host::register_bytes(on_host::instructions()) / int{sizeof(float)};
  const auto x =
      generate<float>(m, row_1d.dense, {3, width}, [](auto i, auto j) { return float(i - 2 * j); });
  recording = true;
  const auto y = spmm(a, x);  // (3, width)
  recording = false;

  std::ifstream file(arguments[1]);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::size_t functions = 0, at = page.find("From `spmm(a, x)` to the innermost loop");
  bool as_documented = at != std::string::npos;
  for (std::size_t k = 0; k < found_depth; ++k) {
    std::string name = short_name(without_arguments(name_of(found[k])));
    if (name.starts_with("run_avx")) name = "run_as_compiled";  // for another instruction set
    if (name.empty()) continue;
    std::printf("%2d %s\n", int(++functions), name.c_str());
    at = as_documented ? page.find("`" + name, at) : at;
    as_documented =
        as_documented && at != std::string::npos && at < page.find("\n\n", page.find("From `spmm(a, x)`"));
  }
  if (!as_documented) std::printf("docs/design.md does not name these functions in this order\n");
  if (functions > most_functions) std::printf("these are more than %d\n", int(most_functions));
  return functions == 0 || functions > most_functions || !as_documented ? 1 : 0;
}
