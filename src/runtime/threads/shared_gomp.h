// shared_gomp.h: OpenMP on the process's own thread pool.
#pragma once

#include <optional>

#include "collage/support/result.h"

namespace collage {

/// Loads the library that gives out the process's thread pool as OpenMP (gomp_shim/). Libraries loaded later that need
/// libgomp.so.1 are bound to it instead of to the system's. Call it before loading such a library.
///
/// Nothing when OpenMP runs on the pool; else why not: the process has loaded another libgomp.so.1 already, or ours is
/// missing. Results are right all the same then, but two teams of threads may compete. May be called again.
///
/// Ours has only what such libraries were seen to call; a library that needs more of OpenMP cannot be loaded after it.
std::optional<Reason> UseSharedGomp();

}  // namespace collage
