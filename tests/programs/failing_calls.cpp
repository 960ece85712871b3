// SPDX-License-Identifier: Apache-2.0
/// Preloaded into a program: fails one call of the system by its number, and counts all of them.
///
/// Before main, where all libraries are loaded, the program becomes a server: for each line
///   KIND THREAD NUMBER FOLDER
/// on its stdin it forks, and the child runs main in FOLDER, in which the call of this KIND with this NUMBER,
/// from 0, on this THREAD fails. The server writes the child's number and, as wait() has it, its status, a
/// line each. The child leaves there `stdout`, `stderr` and `calls`: a line "failed CALL PATH" at once, and
/// at the end "count KIND THREAD CALLS" of each kind and thread, and "live BLOCKS". THREAD is the way from
/// main's, 0: the first thread that it starts is 0.0, the next 0.1. So numbers do not depend on the order of
/// threads. Where KIND is `stacks`, nothing fails, and each call leaves "stack KIND THREAD NUMBER HASH" of
/// the calls that led to it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

enum kind { allocation, read_, write_, open_, map, sync_, name, start, kinds };
constexpr std::array<const char*, kinds> names{"allocation", "read", "write", "open",
                                               "map",        "sync", "name",  "start"};
constexpr std::array<int, kinds> codes{ENOMEM, EIO, ENOSPC, EMFILE, ENOMEM, EIO, EIO, EAGAIN};

struct counted_thread {
  std::array<char, 32> path{};
  std::array<std::atomic<long>, kinds> calls{};
  std::atomic<int> started{0};
  counted_thread* before = nullptr;
};
std::atomic<counted_thread*> last_thread{nullptr};
std::atomic<long> live{0};
__attribute__((tls_model("initial-exec"))) thread_local counted_thread* mine = nullptr;

std::atomic<bool> armed{false};
bool lists_stacks = false;
int report = -1;
int failing_kind = -1;
std::array<char, 32> failing_thread{};
long failing_number = -1;

template <class F>
F* real(F*& known, const char* called) {
  if (known == nullptr) known = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, called));
  return known;
}

template <class... Value>
void tell(const char* form, Value... values) {
  std::array<char, 4096> line;
  const int size = std::snprintf(line.data(), line.size(), form, values...);
  ::syscall(SYS_write, report, line.data(), static_cast<std::size_t>(size));
}

/// A thread's counters, by its way from main's. They stay until the process ends.
counted_thread* enlist(const char* path) {
  auto* const t = new (__libc_malloc(sizeof(counted_thread))) counted_thread;
  std::snprintf(t->path.data(), t->path.size(), "%s", path);
  t->before = last_thread.load();
  while (!last_thread.compare_exchange_weak(t->before, t)) {
  }
  return t;
}

void tell_stack(kind k, long number) {
  counted_thread* const of = std::exchange(mine, nullptr);  // what unwinding calls does not count
  std::array<void*, 64> calls{};
  const int depth = ::backtrace(calls.data(), static_cast<int>(calls.size()));
  std::uint64_t hash = 14695981039346656037U;
  for (int c = 0; c < depth; ++c)
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(calls[static_cast<std::size_t>(c)])) * 1099511628211U;
  mine = of;
  tell("stack %s %s %ld %016lx\n", names[k], mine->path.data(), number, hash);
}

/// Whether this call, on this path or open file, has to fail; then errno says why.
bool fails(kind k, const char* call, const char* path = "", int file = -1) {
  if (!armed || mine == nullptr) return false;
  const long number = mine->calls[k]++;
  if (lists_stacks) tell_stack(k, number);
  if (k != failing_kind || number != failing_number || mine->path != failing_thread) return false;
  std::array<char, 32> link{};
  std::array<char, 2048> target{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  if (file >= 0 && ::readlink(link.data(), target.data(), target.size() - 1) > 0) path = target.data();
  tell("failed %s %s\n", call, path);
  errno = codes[k];
  return true;
}
bool fails(kind k, const char* call, int file) { return fails(k, call, "", file); }
/// As fails; the stream then has had an error, as after a call of the system that failed. Of stderr nobody
/// could be told.
bool fails(kind k, const char* call, std::FILE* stream) {
  if (stream == nullptr || stream == stderr || !fails(k, call, ::fileno(stream))) return false;
  constexpr int has_failed = 0x20;  // of glibc: _IO_ERR_SEEN
  stream->_flags |= has_failed;
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) ++live;
  return memory;
}

void write_counts() {
  armed = false;
  for (const counted_thread* t = last_thread; t != nullptr; t = t->before)
    for (std::size_t k = 0; k < kinds; ++k)
      if (const long calls = t->calls[k]; calls > 0)
        tell("count %s %s %ld\n", names[k], t->path.data(), calls);
  tell("live %ld\n", live.load());
}

int into(const char* file) { return ::open(file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666); }

/// The child: in the folder, with the fault.
void become_run(const char* kind_name, const char* thread, long number, const char* folder) {
  if (::chdir(folder) != 0) std::_Exit(99);
  ::dup2(into("stdout"), 1);
  ::dup2(into("stderr"), 2);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  report = into("calls");
  failing_kind =
      static_cast<int>(std::find(names.begin(), names.end(), std::string_view(kind_name)) - names.begin());
  lists_stacks = std::string_view(kind_name) == "stacks";
  std::snprintf(failing_thread.data(), failing_thread.size(), "%s", thread);
  failing_number = number;
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  mine = enlist("0");
  std::atexit(write_counts);
  armed = true;
}

/// Returns in each child, and ends the server where its input does.
void serve() {
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), stdin) != nullptr) {
    std::array<char, 32> kind_name{}, thread{};
    std::array<char, 2048> folder{};
    long number = 0;
    if (std::sscanf(line.data(), "%31s %31s %ld %2047s", kind_name.data(), thread.data(), &number,
                    folder.data()) != 4)
      std::_Exit(98);
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) return become_run(kind_name.data(), thread.data(), number, folder.data());
    std::printf("%d\n", child);
    std::fflush(stdout);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("%d\n", status);
    std::fflush(stdout);
  }
  std::_Exit(0);
}

int (*main_of_program)(int, char**, char**) = nullptr;
int served_main(int argc, char** argv, char** environment) {
  ::unsetenv("LD_PRELOAD");
  serve();
  return main_of_program(argc, argv, environment);
}

bool makes_file(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

struct begin_of_thread {
  void* (*body)(void*);
  void* argument;
  counted_thread* counters;
};
void* counted_body(void* from) {
  const begin_of_thread begin = *static_cast<begin_of_thread*>(from);
  __libc_free(from);
  mine = begin.counters;
  return begin.body(begin.argument);
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  static decltype(__libc_start_main)* next = nullptr;
  main_of_program = main;
  return real(next, "__libc_start_main")(served_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(std::size_t size) {
  return fails(allocation, "malloc") ? nullptr : counted(__libc_malloc(size));
}
void* calloc(std::size_t n, std::size_t size) {
  return fails(allocation, "calloc") ? nullptr : counted(__libc_calloc(n, size));
}
void* realloc(void* from, std::size_t size) {
  if (fails(allocation, "realloc")) return nullptr;
  void* const to = __libc_realloc(from, size);
  if (from == nullptr && to != nullptr) ++live;
  if (from != nullptr && size == 0) --live;
  return to;
}
void* memalign(std::size_t alignment, std::size_t size) {
  return fails(allocation, "memalign") ? nullptr : counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(allocation, "aligned_alloc") ? nullptr : counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** to, std::size_t alignment, std::size_t size) {
  if (fails(allocation, "posix_memalign")) return ENOMEM;
  void* const memory = counted(__libc_memalign(alignment, size));
  if (memory == nullptr) return ENOMEM;
  *to = memory;
  return 0;
}
void free(void* memory) {
  if (memory != nullptr) --live;
  __libc_free(memory);
}

ssize_t read(int file, void* to, std::size_t size) {
  return fails(read_, "read", file) ? -1 : ::syscall(SYS_read, file, to, size);
}
ssize_t pread(int file, void* to, std::size_t size, off_t at) {
  return fails(read_, "pread", file) ? -1 : ::syscall(SYS_pread64, file, to, size, at);
}
decltype(pread64) pread64 __attribute__((alias("pread")));  // off64_t is off_t here
ssize_t write(int file, const void* from, std::size_t size) {
  return fails(write_, "write", file) ? -1 : ::syscall(SYS_write, file, from, size);
}
ssize_t pwrite(int file, const void* from, std::size_t size, off_t at) {
  return fails(write_, "pwrite", file) ? -1 : ::syscall(SYS_pwrite64, file, from, size, at);
}
decltype(pwrite64) pwrite64 __attribute__((alias("pwrite")));
ssize_t writev(int file, const iovec* from, int parts) {
  return fails(write_, "writev", file) ? -1 : ::syscall(SYS_writev, file, from, parts);
}
int ftruncate(int file, off_t size) {
  return fails(write_, "ftruncate", file) ? -1 : static_cast<int>(::syscall(SYS_ftruncate, file, size));
}
decltype(ftruncate64) ftruncate64 __attribute__((alias("ftruncate")));
int fallocate(int file, int mode, off_t at, off_t size) {
  return fails(write_, "fallocate", file) ? -1
                                          : static_cast<int>(::syscall(SYS_fallocate, file, mode, at, size));
}
decltype(fallocate64) fallocate64 __attribute__((alias("fallocate")));
int fsync(int file) {
  return fails(sync_, "fsync", file) ? -1 : static_cast<int>(::syscall(SYS_fsync, file));
}
int rename(const char* from, const char* to) {
  return fails(name, "rename", to) ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}
int mkdir(const char* folder, mode_t mode) {
  return fails(name, "mkdir", folder) ? -1 : static_cast<int>(::syscall(SYS_mkdir, folder, mode));
}

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const int mode = makes_file(flags) ? va_arg(more, int) : 0;
  va_end(more);
  return fails(open_, "open", path) ? -1
                                    : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
decltype(open64) open64 __attribute__((alias("open")));
std::FILE* fopen(const char* path, const char* mode) {
  static decltype(fopen)* next = nullptr;
  return fails(open_, "fopen", path) ? nullptr : real(next, "fopen")(path, mode);
}
decltype(fopen64) fopen64 __attribute__((alias("fopen")));
DIR* opendir(const char* path) {
  static decltype(opendir)* next = nullptr;
  return fails(open_, "opendir", path) ? nullptr : real(next, "opendir")(path);
}
int mkstemp(char* path) {
  static decltype(mkstemp)* next = nullptr;
  return fails(open_, "mkstemp", path) ? -1 : real(next, "mkstemp")(path);
}
dirent* readdir(DIR* folder) {
  static decltype(readdir)* next = nullptr;
  return fails(read_, "readdir", ::dirfd(folder)) ? nullptr : real(next, "readdir")(folder);
}
decltype(readdir64) readdir64 __attribute__((alias("readdir")));

std::size_t fread(void* to, std::size_t size, std::size_t n, std::FILE* f) {
  static decltype(fread)* next = nullptr;
  return fails(read_, "fread", f) ? 0 : real(next, "fread")(to, size, n, f);
}
std::size_t fwrite(const void* from, std::size_t size, std::size_t n, std::FILE* f) {
  static decltype(fwrite)* next = nullptr;
  return fails(write_, "fwrite", f) ? 0 : real(next, "fwrite")(from, size, n, f);
}
int fputs(const char* text, std::FILE* f) {
  static decltype(fputs)* next = nullptr;
  return fails(write_, "fputs", f) ? EOF : real(next, "fputs")(text, f);
}
int fputc(int byte, std::FILE* f) {
  static decltype(fputc)* next = nullptr;
  return fails(write_, "fputc", f) ? EOF : real(next, "fputc")(byte, f);
}
int fflush(std::FILE* f) {
  static decltype(fflush)* next = nullptr;
  return fails(write_, "fflush", f) ? EOF : real(next, "fflush")(f);
}
int fclose(std::FILE* f) {
  static decltype(fclose)* next = nullptr;
  const bool failed = fails(write_, "fclose", f);
  const int why = errno, code = real(next, "fclose")(f);
  if (!failed) return code;
  errno = why;
  return EOF;
}

void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t from) {
  return fails(map, "mmap", file)
             ? MAP_FAILED
             : reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, from));
}
decltype(mmap64) mmap64 __attribute__((alias("mmap")));

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static decltype(pthread_create)* next = nullptr;
  if (fails(start, "pthread_create")) return EAGAIN;
  if (!armed || mine == nullptr) return real(next, "pthread_create")(id, attributes, body, argument);
  std::array<char, 48> path;
  std::snprintf(path.data(), path.size(), "%s.%d", mine->path.data(), mine->started++);
  auto* const begin = static_cast<begin_of_thread*>(__libc_malloc(sizeof(begin_of_thread)));
  *begin = {body, argument, enlist(path.data())};
  const int code = real(next, "pthread_create")(id, attributes, counted_body, begin);
  if (code != 0) __libc_free(begin);
  return code;
}

}  // extern "C"
