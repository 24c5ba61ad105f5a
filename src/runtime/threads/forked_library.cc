// forked_library.cc: in which process a library was used first.
#include "runtime/threads/forked_library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

#include "collage/support/error.h"

namespace collage {

void UseLibraryWithThreads(std::string_view library) {
  static std::mutex mutex;
  static std::map<std::string, pid_t, std::less<>>& owners = *new std::map<std::string, pid_t, std::less<>>;
  const std::lock_guard lock(mutex);
  const pid_t owner = owners.emplace(library, getpid()).first->second;
  if (owner == getpid()) return;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("{} has run in the process that compiles, and its threads do not survive a fork", library),
              "", "compile in a process that has not run an executable with such partitions");
}

}  // namespace collage
