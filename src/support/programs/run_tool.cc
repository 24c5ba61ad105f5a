// run_tool.cc: posix_spawn, with both streams in a file of memory, which never fills up as a pipe would.
#include "support/programs/run_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "collage/support/error.h"

extern char** environ;

namespace collage {
namespace {

std::string ReadFromStart(int fd) {
  std::string content;
  std::array<char, 1 << 14> buffer;
  for (ssize_t got = 0; (got = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(content.size()))) > 0;) {
    content.append(buffer.data(), static_cast<size_t>(got));
  }
  return content;
}

}  // namespace

ToolResult RunTool(const std::vector<std::string>& words) {
  const int output = memfd_create("collage-output", MFD_CLOEXEC);
  if (output < 0) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot run '{}': {}", words.front(), std::strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments.front(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  ToolResult result;
  while (failed == 0 && waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  result.output = ReadFromStart(output);
  close(output);
  if (failed == 0) return result;
  throw Error(ErrorCategory::kUnavailable, fmt::format("cannot run '{}': {}", words.front(), std::strerror(failed)));
}

}  // namespace collage
