// A library that keeps threads is refused in children of the process that used it.
#include "runtime/threads/forked_library.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collage/support/error.h"

namespace collage {
namespace {

/// The error in a child, forked now, that uses `library`; empty if it may.
std::string ToldInAChild(const char* library) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string told;
    try {
      UseLibraryWithThreads(library);
    } catch (const Error& error) {
      told = error.message();
    }
    _exit(write(ends[1], told.data(), told.size()) == static_cast<ssize_t>(told.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string told(256, '\0');
  told.resize(static_cast<size_t>(std::max<ssize_t>(read(ends[0], told.data(), told.size()), 0)));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return told;
}

TEST(ForkedLibraryTest, ItsThreadsDoNotSurviveAFork) {
  EXPECT_EQ(ToldInAChild("acme"), "");
  UseLibraryWithThreads("acme");
  UseLibraryWithThreads("acme");
  EXPECT_EQ(ToldInAChild("acme"), "acme has run in the process that compiles, and its threads do not survive a fork");
  EXPECT_EQ(ToldInAChild("other"), "");
}

}  // namespace
}  // namespace collage
