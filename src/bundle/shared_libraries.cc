// shared_libraries.cc: reads lines "NAME => PATH (ADDRESS)" of `ld-linux.so --list`, which ldd runs, too.
#include "bundle/shared_libraries.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "collage/support/error.h"
#include "support/dynamic_library.h"
#include "support/programs/run_tool.h"

namespace collage {
namespace {

constexpr std::string_view kArrow = " => ";

constexpr std::array<std::string_view, 11> kOfLibc{"ld-linux",     "linux-vdso.so", "libc.so",       "libm.so",
                                                   "libmvec.so",   "libdl.so",      "libpthread.so", "librt.so",
                                                   "libresolv.so", "libutil.so",    "libanl.so"};

/// The dynamic linker's list. It looks into the folders of the packages' libraries only if it does not find all
/// libraries of a module otherwise, as opening the module does.
ToolResult List(const std::filesystem::path& file, const std::string& interpreter) {
  ToolResult listed = RunTool({interpreter, "--list", file.string()});
  std::string folders;
  for (const auto& library : LibrariesOfModule(file.filename().string())) {
    folders += (folders.empty() ? "" : ":") + library.parent_path().string();
  }
  if (listed.status == 0 || folders.empty()) return listed;
  return RunTool({interpreter, "--library-path", folders, "--list", file.string()});
}

}  // namespace

bool IsPartOfLibc(const std::string& name) {
  return std::ranges::any_of(kOfLibc, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::map<std::string, std::filesystem::path> SharedLibrariesOf(const std::filesystem::path& file,
                                                               const std::string& interpreter) {
  const ToolResult listed = List(file, interpreter);
  if (listed.status != 0) {  // it names the first library that it does not find
    throw Error(ErrorCategory::kUnavailable,
                "the dynamic linker cannot load it: " + listed.output.substr(0, listed.output.find('\n')),
                file.string());
  }
  std::map<std::string, std::filesystem::path> found;
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(kArrow);
    if (arrow == line.npos) continue;  // the dynamic linker itself
    const size_t begin = line.find_first_not_of(" \t");
    const std::string name = line.substr(begin, arrow - begin);
    const std::string path = line.substr(arrow + kArrow.size());
    if (path.starts_with('/') && !IsPartOfLibc(name)) found[name] = path.substr(0, path.rfind(" ("));
  }
  return found;
}

}  // namespace collage
