// thread_pool.h: the one pool of worker threads of a process.
#pragma once

#include <cstdint>

namespace collage {

/// Processors that this process may use: affinity mask and cgroup quota considered, at least 1.
int AvailableProcessors();

/// Sets how many threads (the caller included) parallel regions use; at least 1. Kernels loaded later obey it.
void SetNumThreads(int num_threads);
int NumThreads();

/// A plain function, so that generated machine code can be called without a closure. Must not throw.
using ParallelBody = void (*)(void* context, int64_t begin, int64_t end);

/// Splits [0, count) into at most NumThreads() contiguous ranges and runs `body` on each, the first on the caller.
/// Returns when all are done. Nested calls run serially; calls of several threads at
/// once take turns. Costs about a microsecond when more than one thread is used.
void ParallelFor(int64_t count, ParallelBody body, void* context);

}  // namespace collage
