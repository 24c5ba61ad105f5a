#include "support/interruption.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/file.h"

namespace collage {
namespace {

/// Runs `work` in a child process, which writes a path once it is ready and waits; then sends it `signal`. Returns the
/// path; `status` is that of waitpid.
std::string Interrupt(int signal, int& status, const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    CleanUpWhenInterrupted();
    const std::string path = work() + "\n";
    WriteAll(ends[1], path.data(), path.size());
    close(ends[1]);
    for (;;) pause();
  }
  close(ends[1]);
  std::string path;
  std::array<char, 256> buffer{};
  // Processes that the child forked may hold the other end, too.
  for (ssize_t got = 0; !path.ends_with('\n') && (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    path.append(buffer.data(), static_cast<size_t>(got));
  }
  if (!path.empty()) path.pop_back();
  close(ends[0]);
  kill(child, signal);
  waitpid(child, &status, 0);
  return path;
}

TEST(InterruptionTest, SignalsRemoveFoldersWithAllInThem) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int status = 0;
    const std::string path = Interrupt(signal, status, [] {
      auto* const folder = new TemporaryFolder;  // no destructor runs
      std::filesystem::create_directories(*folder / "a" / "b");
      for (int i = 0; i < 200; ++i) WriteFile(*folder / "a" / ("file " + std::to_string(i)), "x");
      std::filesystem::create_symlink("/", *folder / "root");
      return folder->path().string();
    });
    ASSERT_FALSE(path.empty());
    EXPECT_FALSE(std::filesystem::exists(path)) << path;
    ASSERT_TRUE(WIFSIGNALED(status)) << "whoever waits must see that it was interrupted";
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(InterruptionTest, SignalsRemoveHalfWrittenFiles) {
  const TemporaryFolder folder;
  int status = 0;
  Interrupt(SIGTERM, status, [&] {
    auto* const file = new AtomicFile(folder / "result");
    file->Write("half");
    return std::string("ready");
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// In a child process: sends itself `signals`, one by one, and ends with what IsAskedToEnd says.
int StatusAfter(const std::vector<int>& signals) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);  // the first one is answered there
    CleanUpWhenInterrupted();
    EndGently();
    for (const int signal : signals) raise(signal);
    _exit(IsAskedToEnd() ? 7 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(InterruptionTest, TheFirstSignalOnlyAsksWhereThatIsWanted) {
  EXPECT_EQ(WEXITSTATUS(StatusAfter({})), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const int asked = StatusAfter({signal});
    ASSERT_TRUE(WIFEXITED(asked));
    EXPECT_EQ(WEXITSTATUS(asked), 7);
    const int ended = StatusAfter({SIGINT, signal});
    ASSERT_TRUE(WIFSIGNALED(ended));
    EXPECT_EQ(WTERMSIG(ended), signal);
  }
  EXPECT_TRUE(WIFSIGNALED(StatusAfter({SIGHUP})));  // the terminal is gone
}

TEST(InterruptionTest, SignalsEndWorkersAndRemoveWhatTheyNoted) {
  int status = 0;
  const std::string path = Interrupt(SIGINT, status, [] {
    ShareTemporaries();
    int ends[2];
    if (pipe(ends) != 0) return std::string();
    const pid_t worker = fork();
    if (worker == 0) {
      setpgid(0, 0);
      signal(SIGINT, SIG_IGN);
      auto* const folder = new TemporaryFolder;
      const std::string made = folder->path().string();
      WriteAll(ends[1], made.data(), made.size());
      close(ends[0]);
      close(ends[1]);
      for (int i = 0;; ++i) WriteFile(*folder / std::to_string(i % 100), "busy");
    }
    setpgid(worker, worker);
    NoteWorkerGroup(worker);
    close(ends[1]);
    std::array<char, 256> buffer{};
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    return std::string(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  });
  ASSERT_FALSE(path.empty());
  EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST(InterruptionTest, WhatAWorkerLeftGoesWithIt) {
  ShareTemporaries();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t worker = fork();
  if (worker == 0) {
    auto* const folder = new TemporaryFolder;
    const std::string made = folder->path().string();
    WriteAll(ends[1], made.data(), made.size());
    raise(SIGKILL);
  }
  close(ends[1]);
  std::array<char, 256> buffer{};
  const ssize_t got = read(ends[0], buffer.data(), buffer.size());
  close(ends[0]);
  ASSERT_GT(got, 0);
  const std::filesystem::path path(std::string(buffer.data(), static_cast<size_t>(got)));
  waitpid(worker, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  ForgetWorkerGroup(worker);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(InterruptionTest, IgnoredSignalsStayIgnored) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGHUP, SIG_IGN);
    CleanUpWhenInterrupted();
    raise(SIGHUP);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace collage
