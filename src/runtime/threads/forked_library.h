// forked_library.h: libraries that keep threads of their own for the whole process. A child that is forked afterwards
// has the library's memory without these threads, and waits for them without end.
#pragma once

#include <string_view>

namespace collage {

/// To be called before each use of such a library. Throws kUnavailable where `library` has been used in a process that
/// this one was forked from. Thread-safe.
void UseLibraryWithThreads(std::string_view library);

}  // namespace collage
