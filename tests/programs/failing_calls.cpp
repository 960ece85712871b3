// SPDX-License-Identifier: Apache-2.0
/// Preloaded into a program: fails one call of the system by its number, and counts all of them.
///
/// Before main, where all libraries are loaded, the program becomes a server: for each line
///   KIND THREAD NUMBER FOLDER
/// on its stdin it forks, and the child runs main in FOLDER, in which the call of this KIND with this NUMBER,
/// from 0, on this THREAD fails. The server writes the child's status as wait() has it, a line each. The
/// child leaves there `stdout`, `stderr` and `calls`: a line "failed CALL" at once, and at the end
/// "count KIND THREAD CALLS" of each kind and thread, and "live BLOCKS". THREAD is the way from main's, 0:
/// the first thread that it starts is 0.0, the next 0.1. So numbers do not depend on the order of threads.

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
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

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
  std::array<char, 32> path;
  std::array<std::atomic<long>, kinds> calls;
  std::atomic<int> started;
};
constexpr int most_threads = 256;
std::array<counted_thread, most_threads> threads;
std::atomic<int> thread_count{0};
std::atomic<long> live{0};
__attribute__((tls_model("initial-exec"))) thread_local counted_thread* mine = nullptr;

std::atomic<bool> armed{false};
int report = -1;
int failing_kind = -1;
std::array<char, 32> failing_thread{};
long failing_number = -1;

template <class F>
F* real(F*& known, const char* called) {
  if (known == nullptr) known = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, called));
  return known;
}

void put(const char* text, std::size_t size) { ::syscall(SYS_write, report, text, size); }

/// A thread's counters, by its way from main's.
counted_thread* enlist(const char* path) {
  counted_thread* const t = &threads[static_cast<std::size_t>(thread_count++)];
  std::snprintf(t->path.data(), t->path.size(), "%s", path);
  return t;
}

/// Whether this call has to fail; then errno says why.
bool fails(kind k, const char* call) {
  if (!armed || mine == nullptr) return false;
  const long number = mine->calls[k]++;
  if (k != failing_kind || number != failing_number || mine->path != failing_thread) return false;
  std::array<char, 64> line;
  put(line.data(), static_cast<std::size_t>(std::snprintf(line.data(), line.size(), "failed %s\n", call)));
  errno = codes[k];
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) ++live;
  return memory;
}

void write_counts() {
  armed = false;
  std::array<char, 96> line;
  const auto say = [&](int size) { put(line.data(), static_cast<std::size_t>(size)); };
  for (int t = 0; t < thread_count; ++t)
    for (int k = 0; k < kinds; ++k)
      if (const long calls = threads[static_cast<std::size_t>(t)].calls[static_cast<std::size_t>(k)];
          calls > 0)
        say(std::snprintf(line.data(), line.size(), "count %s %s %ld\n", names[static_cast<std::size_t>(k)],
                          threads[static_cast<std::size_t>(t)].path.data(), calls));
  say(std::snprintf(line.data(), line.size(), "live %ld\n", live.load()));
}

int into(const char* file) { return ::open(file, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666); }

/// The child: in the folder, with the fault.
void become_run(const char* kind_name, const char* thread, long number, const char* folder) {
  if (::chdir(folder) != 0) std::_Exit(99);
  ::dup2(into("stdout"), 1);
  ::dup2(into("stderr"), 2);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  report = into("calls");
  for (int k = 0; k < kinds; ++k)
    if (std::string_view(names[static_cast<std::size_t>(k)]) == kind_name) failing_kind = k;
  std::snprintf(failing_thread.data(), failing_thread.size(), "%s", thread);
  failing_number = number;
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  mine = enlist("0");
  std::atexit(write_counts);
  armed = true;
}

/// As wait() has it; after ten seconds in which this process ran, too, the child hangs, and ends by SIGALRM.
int status_of(pid_t child) {
  int status = 0;
  for (int tick = 0; tick < 10000; ++tick) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    ::usleep(1000);
  }
  ::kill(child, SIGALRM);
  ::waitpid(child, &status, 0);
  return status;
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
    std::printf("%d\n", status_of(child));
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
  return fails(read_, "read") ? -1 : ::syscall(SYS_read, file, to, size);
}
ssize_t pread(int file, void* to, std::size_t size, off_t at) {
  return fails(read_, "pread") ? -1 : ::syscall(SYS_pread64, file, to, size, at);
}
ssize_t pread64(int file, void* to, std::size_t size, off64_t at) {
  return fails(read_, "pread64") ? -1 : ::syscall(SYS_pread64, file, to, size, at);
}
ssize_t write(int file, const void* from, std::size_t size) {
  return fails(write_, "write") ? -1 : ::syscall(SYS_write, file, from, size);
}
ssize_t pwrite(int file, const void* from, std::size_t size, off_t at) {
  return fails(write_, "pwrite") ? -1 : ::syscall(SYS_pwrite64, file, from, size, at);
}
ssize_t pwrite64(int file, const void* from, std::size_t size, off64_t at) {
  return fails(write_, "pwrite64") ? -1 : ::syscall(SYS_pwrite64, file, from, size, at);
}
ssize_t writev(int file, const iovec* from, int parts) {
  return fails(write_, "writev") ? -1 : ::syscall(SYS_writev, file, from, parts);
}
int ftruncate(int file, off_t size) {
  return fails(write_, "ftruncate") ? -1 : static_cast<int>(::syscall(SYS_ftruncate, file, size));
}
int ftruncate64(int file, off64_t size) {
  return fails(write_, "ftruncate64") ? -1 : static_cast<int>(::syscall(SYS_ftruncate, file, size));
}
int fallocate(int file, int mode, off_t at, off_t size) {
  return fails(write_, "fallocate") ? -1 : static_cast<int>(::syscall(SYS_fallocate, file, mode, at, size));
}
int fallocate64(int file, int mode, off64_t at, off64_t size) {
  return fails(write_, "fallocate64") ? -1 : static_cast<int>(::syscall(SYS_fallocate, file, mode, at, size));
}
int fsync(int file) { return fails(sync_, "fsync") ? -1 : static_cast<int>(::syscall(SYS_fsync, file)); }
int rename(const char* from, const char* to) {
  return fails(name, "rename") ? -1 : static_cast<int>(::syscall(SYS_rename, from, to));
}
int mkdir(const char* folder, mode_t mode) {
  return fails(name, "mkdir") ? -1 : static_cast<int>(::syscall(SYS_mkdir, folder, mode));
}

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return fails(open_, "open") ? -1 : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return fails(open_, "open64") ? -1 : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
std::FILE* fopen(const char* path, const char* mode) {
  static decltype(fopen)* next = nullptr;
  return fails(open_, "fopen") ? nullptr : real(next, "fopen")(path, mode);
}
std::FILE* fopen64(const char* path, const char* mode) {
  static decltype(fopen64)* next = nullptr;
  return fails(open_, "fopen64") ? nullptr : real(next, "fopen64")(path, mode);
}
void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t from) {
  return fails(map, "mmap")
             ? MAP_FAILED
             : reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, from));
}
void* mmap64(void* at, std::size_t size, int protection, int flags, int file, off64_t from) {
  return fails(map, "mmap64")
             ? MAP_FAILED
             : reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, from));
}

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
