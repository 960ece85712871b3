// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <thread>

#include "device_view.hpp"
#include "fat_binary.hpp"
#include "machine.hpp"

namespace emulator {

namespace {

/// What a program's start registers of one fat binary.
struct image {
  ptx_image code;
  std::unique_ptr<ptx::module> parsed;                            ///< when a kernel is first wanted
  std::map<int, std::map<std::string, std::uint64_t>> variables;  ///< addresses by device and name
};
struct registered_kernel {
  image* from;
  std::string name;
  std::unique_ptr<ptx::program> decoded;
  std::string refusal;
  int most_dynamic_shared = 48 << 10;
};
struct registered_variable {
  image* from;
  std::string name;
  std::size_t bytes;
};

struct registry {
  std::vector<std::unique_ptr<image>> images;
  std::map<const void*, registered_kernel> kernels;  ///< by the function of the host
  std::map<const void*, registered_variable> variables;
  std::map<std::string, kernel_account> accounts;
  std::chrono::steady_clock::duration time{};  ///< in all launches
  bool counts_sectors = std::getenv("EMULATOR_COSTS") != nullptr;

  registry() {
    if (counts_sectors) std::atexit([] { instance().print(); });
  }
  /// One line a kernel, those with most instructions first.
  void print() const {
    if (accounts.empty()) return static_cast<void>(std::fputs("no kernel ran\n", stderr));
    std::vector<std::pair<std::string, kernel_account>> all(accounts.begin(), accounts.end());
    std::ranges::sort(all, [](const auto& a, const auto& b) {
      return a.second.spent.instructions > b.second.spent.instructions;
    });
    std::uint64_t sum = 0;
    for (const auto& [name, a] : all) {
      sum += a.spent.instructions;
      const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
      std::fprintf(
          stderr,
          "%12llu instructions %10llu of warps %10llu threads %6llu launches %10llu B loaded %10llu B "
          "stored %10llu B touched %10llu loads %10llu wide  %s\n",
          number(a.spent.instructions), number(a.spent.warp_instructions), number(a.threads),
          number(a.launches), number(32 * a.spent.moved.load_sectors),
          number(32 * a.spent.moved.store_sectors), number(32 * a.spent.distinct_sectors),
          number(a.spent.moved.loads), number(a.spent.moved.wide_loads), name.c_str());
    }
    const double seconds = std::chrono::duration<double>(time).count();
    std::fprintf(stderr, "%12llu instructions in %.2f s, %.0f million a second\n",
                 static_cast<unsigned long long>(sum), seconds, static_cast<double>(sum) / seconds / 1e6);
  }
  static registry& instance() {
    static registry* const only = new registry;
    return *only;
  }
};

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

const ptx::module& parsed(image& i) {
  if (!i.code.problem.empty()) throw ptx::refusal(i.code.problem);
  if (i.code.text.empty())
    throw ptx::refusal("the program carries no PTX: compile it for a virtual architecture too (-arch=sm_90)");
  if (!i.parsed) i.parsed = std::make_unique<ptx::module>(i.code.text);
  return *i.parsed;
}

const ptx::program& decoded(registered_kernel& k) {
  if (!k.refusal.empty()) throw ptx::refusal(k.refusal);
  if (k.decoded) return *k.decoded;
  try {
    const ptx::module& m = parsed(*k.from);
    const auto found = m.functions().find(k.name);
    if (found == m.functions().end()) throw ptx::refusal("the PTX has no such function");
    k.decoded = std::make_unique<ptx::program>(ptx::decode(m, found->second));
    k.decoded->name = demangled(k.name);
    return *k.decoded;
  } catch (const ptx::refusal& r) {
    k.refusal = "kernel " + demangled(k.name) + " cannot be emulated: " + r.what();
    throw ptx::refusal(k.refusal);
  }
}

/// The initial value of a variable: numbers, or addresses of others.
void initialize(const ptx::variable& v, std::byte* at,
                const std::map<std::string, std::uint64_t>& addresses) {
  std::string_view list = v.initializer;
  if (list.starts_with('{')) list = ptx::trimmed(list.substr(1, list.size() - 2));
  std::size_t offset = 0;
  for (std::string_view item : ptx::split_list(list)) {
    std::uint64_t bits = 0;
    if (!ptx::read_number(item, bits)) {
      if (item.starts_with("generic(")) item = item.substr(8, item.find(')') - 8);
      std::uint64_t more = 0;
      if (const auto plus = item.find('+'); plus != std::string_view::npos) {
        ptx::read_number(ptx::trimmed(item.substr(plus + 1)), more);
        item = ptx::trimmed(item.substr(0, plus));
      }
      const auto found = addresses.find(std::string(item));
      if (found == addresses.end()) ptx::refuse(v.line, "the initial value " + std::string(item));
      bits = found->second + more;
    }
    std::memcpy(at + offset, &bits, ptx::size_of(v.type));
    offset += ptx::size_of(v.type);
  }
}

/// Puts the module's variables on the device, once.
const std::map<std::string, std::uint64_t>& variables_on(machine& m, image& i, int device) {
  const auto [found, fresh] = i.variables.try_emplace(device);
  auto& addresses = found->second;
  if (!fresh) return addresses;
  const ptx::module& code = parsed(i);
  const auto lies_there = [](const ptx::variable& v) {
    return (v.where == ptx::space::global || v.where == ptx::space::constant) && !v.external;
  };
  for (const ptx::variable& v : code.variables()) {
    if (!lies_there(v)) continue;
    void* const memory = m.arena.allocate(std::max<std::size_t>(v.bytes(), 1), device, nullptr);
    if (memory == nullptr) throw ptx::refusal("no memory for the variables of a module");
    std::memset(m.arena.reached(memory), 0, v.bytes());
    std::memset(m.arena.marks_at(memory), 1, v.bytes());
    addresses[std::string(v.name)] = reinterpret_cast<std::uint64_t>(memory);
  }
  for (const ptx::variable& v : code.variables())
    if (lies_there(v) && !v.initializer.empty())
      initialize(v, m.arena.reached(reinterpret_cast<std::byte*>(addresses[std::string(v.name)])), addresses);
  return addresses;
}

unsigned workers_wanted() {
  static const unsigned wanted = [] {
    if (const char* text = std::getenv("EMULATOR_WORKERS"))
      return static_cast<unsigned>(std::max(1, std::atoi(text)));
    return std::max(1u, std::thread::hardware_concurrency());
  }();
  return wanted;
}

struct configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

std::string problem_with(const configuration& c, const registered_kernel& k, const ptx::program& p) {
  const ptx::extent3 grid{c.grid.x, c.grid.y, c.grid.z}, block{c.block.x, c.block.y, c.block.z};
  if (block.size() == 0 || block.size() > p.most_threads || block.z > 64)
    return "blocks of " + ptx::to_string(block) + " threads, of which the kernel allows " +
           std::to_string(p.most_threads);
  if (grid.size() == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return "a grid of " + ptx::to_string(grid) + " blocks";
  if (c.shared > static_cast<std::size_t>(k.most_dynamic_shared) || p.shared_bytes + c.shared > (227 << 10))
    return std::to_string(c.shared) + " bytes of shared memory";
  return {};
}

cudaError_t launch(machine& m, registered_kernel& k, const configuration& c, void** arguments) {
  const auto s = m.find(c.stream);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (s->device != current_device())
    return refuse_with(cudaErrorInvalidResourceHandle,
                       "the stream is one of device " + std::to_string(s->device) +
                           ", the thread's current device is " + std::to_string(current_device()));
  const auto what = std::make_shared<ptx::launch>();
  const std::map<std::string, std::uint64_t>* variables = nullptr;
  try {
    what->kernel = &decoded(k);
    variables = &variables_on(m, *k.from, s->device);
  } catch (const ptx::refusal& r) {
    return refuse_with(cudaErrorNotSupported, r.what());
  }
  const ptx::program& p = *what->kernel;
  if (const std::string problem = problem_with(c, k, p); !problem.empty())
    return refuse_with(cudaErrorInvalidConfiguration, "a launch of " + p.name + " with " + problem);
  what->grid = {c.grid.x, c.grid.y, c.grid.z};
  what->block = {c.block.x, c.block.y, c.block.z};
  what->dynamic_shared = c.shared;
  what->parameters.resize(p.parameter_bytes);
  for (std::size_t n = 0; n < p.parameters.size(); ++n)
    std::memcpy(what->parameters.data() + p.parameters[n].offset, arguments[n], p.parameters[n].bytes);
  m.enqueue_work(*s, [&m, what, variables, device = s->device] {
    m.races.call_it(what->kernel->name);
    const device_view view(m, device, *variables);
    what->memory = &view;
    what->races = m.races.enabled() ? &m.races : nullptr;
    what->counts_sectors = registry::instance().counts_sectors;
    const auto start = std::chrono::steady_clock::now();
    const ptx::account spent = ptx::run_grid(*what, m.races.enabled() ? 1 : workers_wanted(), m.patience);
    registry::instance().time += std::chrono::steady_clock::now() - start;
    kernel_account& total = registry::instance().accounts[what->kernel->name];
    ++total.launches;
    total.threads += what->grid.size() * what->block.size();
    total.spent += spent;
  });
  return cudaSuccess;
}

thread_local std::vector<configuration> pushed;

registered_kernel* find_kernel(const void* host) {
  auto& all = registry::instance().kernels;
  const auto found = all.find(host);
  return found == all.end() ? nullptr : &found->second;
}

cudaError_t launch(const void* host, const configuration& c, void** arguments) {
  return call("a kernel's launch", [&](machine& m, auto&) {
    registered_kernel* const k = find_kernel(host);
    return k == nullptr ? cudaErrorInvalidDeviceFunction : launch(m, *k, c, arguments);
  });
}

/// act(machine, lock, address of the variable, its bytes).
cudaError_t with_symbol(const char* name, const void* symbol, auto act) {
  return call(name, [&](machine& m, auto&) {
    auto& all = registry::instance().variables;
    const auto found = all.find(symbol);
    if (found == all.end()) return cudaErrorInvalidSymbol;
    try {
      const auto& there = variables_on(m, *found->second.from, current_device());
      return act(reinterpret_cast<std::byte*>(there.at(found->second.name)), found->second.bytes);
    } catch (const ptx::refusal& r) {
      return refuse_with(cudaErrorNotSupported, r.what());
    }
  });
}

}  // namespace

int compute_capability() {
  int newest = 0;
  for (const auto& i : registry::instance().images) newest = std::max(newest, i->code.architecture);
  return newest == 0 ? 90 : newest;
}

void count_sectors(bool on) { registry::instance().counts_sectors = on; }

std::map<std::string, kernel_account> kernel_accounts() { return registry::instance().accounts; }

}  // namespace emulator

using emulator::registry;

extern "C" {

void** CUDARTAPI __cudaRegisterFatBinary(void* fat_binary) {
  auto made = std::make_unique<emulator::image>();
  made->code = emulator::find_ptx(fat_binary);
  auto& images = registry::instance().images;
  images.push_back(std::move(made));
  return reinterpret_cast<void**>(images.back().get());
}
void CUDARTAPI __cudaRegisterFatBinaryEnd(void**) {}
void CUDARTAPI __cudaUnregisterFatBinary(void**) {}
char CUDARTAPI __cudaInitModule(void**) { return 1; }
void CUDARTAPI __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t bytes,
                                 int, int) {
  registry::instance().variables[host] = {reinterpret_cast<emulator::image*>(handle), name, bytes};
}
void CUDARTAPI __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                                      uint3*, dim3*, dim3*, int*) {
  emulator::registered_kernel k;
  k.from = reinterpret_cast<emulator::image*>(handle);
  k.name = name;
  registry::instance().kernels[host] = std::move(k);
}

unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                               CUstream_st* stream) {
  emulator::pushed.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (emulator::pushed.empty()) return cudaErrorUnknown;
  const emulator::configuration c = emulator::pushed.back();
  emulator::pushed.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}
/// A kernel is known by the function of the host.
cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                         std::size_t shared, cudaStream_t stream) {
  return emulator::launch(kernel, {grid, block, shared, stream}, arguments);
}
cudaError_t CUDARTAPI cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments,
                                       std::size_t shared, cudaStream_t stream) {
  return emulator::launch(host, {grid, block, shared, stream}, arguments);
}
cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* host, void** arguments) {
  return emulator::launch(host, {c->gridDim, c->blockDim, c->dynamicSmemBytes, c->stream}, arguments);
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  return emulator::call("cudaFuncGetAttributes", [&](auto&, auto&) {
    emulator::registered_kernel* const k = emulator::find_kernel(host);
    if (k == nullptr) return cudaErrorInvalidDeviceFunction;
    try {
      const emulator::ptx::program& p = emulator::decoded(*k);
      *attributes = {};
      attributes->sharedSizeBytes = p.shared_bytes;
      attributes->localSizeBytes = p.local_bytes;
      attributes->maxThreadsPerBlock = static_cast<int>(p.most_threads);
      attributes->numRegs = 32;
      attributes->ptxVersion = attributes->binaryVersion = emulator::compute_capability();
      attributes->maxDynamicSharedSizeBytes = k->most_dynamic_shared;
      return cudaSuccess;
    } catch (const emulator::ptx::refusal& r) {
      return emulator::fail_with(cudaErrorNotSupported, r.what());
    }
  });
}
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
  return emulator::call("cudaFuncSetAttribute", [&](auto&, auto&) {
    emulator::registered_kernel* const k = emulator::find_kernel(host);
    if (k == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) k->most_dynamic_shared = value;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                             std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                    std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** address, const void* symbol) {
  return emulator::with_symbol("cudaGetSymbolAddress", symbol, [&](std::byte* at, std::size_t) {
    *address = at;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return emulator::with_symbol("cudaGetSymbolSize", symbol, [&](std::byte*, std::size_t found) {
    *bytes = found;
    return cudaSuccess;
  });
}

}  // extern "C"
