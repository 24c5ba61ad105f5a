// inject.cc: a library that is loaded before others (LD_PRELOAD) and lets a call of the system fail, as full disks,
// broken ones, signals and machines without memory do.
//
//     COLLAGE_FAULT=CALL:ERROR:NUMBER   that call of each process fails, counted from 1 when its `main` begins
//     COLLAGE_FAULT_SEEN=FILE           is made when that has happened
//
// CALL is malloc, open, read, write, mmap, fsync, rename, mkdir or fork; ERROR is ENOSPC, EIO, EINTR, EACCES, EMFILE,
// ENOMEM, EAGAIN, or SHORT: a read or write of one byte. Blocks of less than 4 KiB are not counted, nor are calls that
// the C library makes inside of itself.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kShort = -1;
constexpr size_t kLarge = 4096;  // smaller blocks come out of memory that the process has

struct Fault {
  char call[16] = "";
  int error = 0;
  long number = 0;
};

int ErrorNamed(const char* name) {
  const struct {
    const char* name;
    int error;
  } known[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},   {"EACCES", EACCES},
               {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"SHORT", kShort}};
  for (const auto& one : known) {
    if (std::strcmp(one.name, name) == 0) return one.error;
  }
  return 0;
}

Fault Read() {
  Fault fault;
  char error[16] = "";
  const char* text = std::getenv("COLLAGE_FAULT");
  if (text == nullptr || std::sscanf(text, "%15[^:]:%15[^:]:%ld", fault.call, error, &fault.number) != 3) return {};
  fault.error = ErrorNamed(error);
  return fault;
}

/// Calls are made before constructors have run, and allocating is one of them.
const Fault& Wanted() {
  static Fault fault;
  static std::atomic<int> state{0};  // 1: being read, 2: read
  int expected = 0;
  if (state.compare_exchange_strong(expected, 1)) {
    fault = Read();
    state = 2;
  }
  static const Fault none;
  return state == 2 ? fault : none;
}

std::atomic<long> num_calls{0};
std::atomic<bool> has_begun{false};  ///< whether `main` has: libraries that are being loaded have nobody to tell
int (*wrapped_main)(int, char**, char**) = nullptr;

int CountingMain(int argc, char** argv, char** environment) {
  has_begun = true;
  return wrapped_main(argc, argv, environment);
}

/// The error with which this call fails; 0: it does not.
int FaultOf(const char* call) {
  if (!has_begun) return 0;
  const Fault& wanted = Wanted();
  if (wanted.error == 0 || std::strcmp(wanted.call, call) != 0 || ++num_calls != wanted.number) return 0;
  if (const char* seen = std::getenv("COLLAGE_FAULT_SEEN")) {
    const long file = syscall(SYS_openat, AT_FDCWD, seen, O_CREAT | O_WRONLY, 0600);
    if (file >= 0) syscall(SYS_close, file);
  }
  return wanted.error;
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <typename Result>
Result Failed(int error) {
  errno = error;
  return static_cast<Result>(-1);
}

template <typename Call>
ssize_t Transfer(const char* name, size_t size, const Call& call) {
  const int error = FaultOf(name);
  if (error == 0) return call(size);
  if (error != kShort) return Failed<ssize_t>(error);
  return call(size < 1 ? size : 1);
}

mode_t ModeOf(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  wrapped_main = main;
  using Start = int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  return Next<Start>("__libc_start_main")(CountingMain, argc, argv, init, fini, loader_fini, stack_end);
}

void* malloc(size_t size) {
  static void* (*const next)(size_t) = Next<void*(size_t)>("malloc");
  if (size < kLarge || FaultOf("malloc") == 0) return next(size);
  errno = ENOMEM;
  return nullptr;
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = ModeOf(flags, more);
  va_end(more);
  static auto* const next = Next<int(const char*, int, ...)>("open");
  const int error = FaultOf("open");
  return error == 0 ? next(path, flags, mode) : Failed<int>(error);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = ModeOf(flags, more);
  va_end(more);
  static auto* const next = Next<int(const char*, int, ...)>("open64");
  const int error = FaultOf("open");
  return error == 0 ? next(path, flags, mode) : Failed<int>(error);
}

ssize_t read(int file, void* data, size_t size) {
  static auto* const next = Next<ssize_t(int, void*, size_t)>("read");
  return Transfer("read", size, [&](size_t count) { return next(file, data, count); });
}

ssize_t write(int file, const void* data, size_t size) {
  static auto* const next = Next<ssize_t(int, const void*, size_t)>("write");
  if (file == STDERR_FILENO) return next(file, data, size);  // else no message could be seen
  return Transfer("write", size, [&](size_t count) { return next(file, data, count); });
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return Transfer("write", size, [&](size_t count) { return next(file, data, count, offset); });
}

ssize_t pread64(int file, void* data, size_t size, off64_t offset) {
  static auto* const next = Next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return Transfer("read", size, [&](size_t count) { return next(file, data, count, offset); });
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  static auto* const next = Next<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (FaultOf("mmap") == 0) return next(address, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

int fsync(int file) {
  static auto* const next = Next<int(int)>("fsync");
  const int error = FaultOf("fsync");
  return error == 0 ? next(file) : Failed<int>(error);
}

int rename(const char* from, const char* to) {
  static auto* const next = Next<int(const char*, const char*)>("rename");
  const int error = FaultOf("rename");
  return error == 0 ? next(from, to) : Failed<int>(error);
}

int mkdir(const char* path, mode_t mode) {
  static auto* const next = Next<int(const char*, mode_t)>("mkdir");
  const int error = FaultOf("mkdir");
  return error == 0 ? next(path, mode) : Failed<int>(error);
}

pid_t fork() {
  static auto* const next = Next<pid_t()>("fork");
  const int error = FaultOf("fork");
  return error == 0 ? next() : Failed<pid_t>(error);
}

}  // extern "C"
