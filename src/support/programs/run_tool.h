// run_tool.h: programs of the system.
#pragma once

#include <string>
#include <vector>

namespace collage {

struct ToolResult {
  int status = 0;      ///< as waitpid gives it; 0: it ended well
  std::string output;  ///< both streams together
};

/// Runs `words`, a program, looked for in $PATH, and its arguments, to its end. Throws kUnavailable when it cannot be
/// run.
ToolResult RunTool(const std::vector<std::string>& words);

}  // namespace collage
