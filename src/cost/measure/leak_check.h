// leak_check.h: what a kernel's runs leave behind in the process: memory that they do not give back, threads that go
// on computing. Either would slow or end whatever runs next, in the compiler's worker and in a user's program alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace collage {

/// Memory of this process, in bytes.
struct MemoryInUse {
  int64_t allocated = 0;  ///< by malloc and what is built on it, and not freed
  int64_t mapped = 0;     ///< virtual memory
  static MemoryInUse Now();
};

/// "leaks memory: 12.5 kB per run", or empty. `num_runs` runs were made since `before` was taken. When memory has grown
/// by 8 bytes a run or more, three batches of further runs (some milliseconds each) decide: what leaks grows in every
/// one of them, what fills caches and pools does not.
std::string FindLeak(const MemoryInUse& before, int64_t num_runs, const std::function<void()>& run);

/// Whether this process has threads beyond the pool's: kernels' own.
bool HasThreadsBeyondPool();

/// "its threads go on running after a run (…)", or empty. Looked at only where there are threads beyond the pool's;
/// then a millisecond after a run decides in most cases. Threads that wait actively for the next run may do so for 10
/// ms.
std::string FindBusyThreads(const std::function<void()>& run);

}  // namespace collage
