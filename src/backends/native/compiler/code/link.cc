// link.cc: which linker links, and running it.
#include "backends/native/compiler/code/link.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "backends/native/linker.h"
#include "collage/support/error.h"
#include "llvm/TargetParser/Host.h"
#include "support/dynamic_library.h"
#include "support/environment.h"
#include "support/file.h"

extern char** environ;

namespace collage::native {
namespace {

/// The lines of the environment for a program whose libraries are in `library_folder`.
std::vector<std::string> EnvironmentFor(const std::string& library_folder) {
  constexpr std::string_view kSearchPath = "LD_LIBRARY_PATH=";
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    if (library_folder.empty() || !std::string_view(*line).starts_with(kSearchPath)) lines.emplace_back(*line);
  }
  if (!library_folder.empty()) lines.push_back(std::string(kSearchPath) + library_folder);
  return lines;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

/// Chooses a bundle's linker, else the system's own, for this machine's objects: it starts in a sixth of the time that
/// lld takes, and a kernel is so small that linking costs little else. lld links for all other processors.
Linker LinkerFor(const Cpu& cpu) {
  const std::string chosen = GetEnvironment("COLLAGE_LINKER").value_or("");
  if (!chosen.empty()) return {chosen, ""};
  const bool is_host = cpu.triple.getArch() == llvm::Triple(llvm::sys::getDefaultTargetTriple()).getArch();
  if (!is_host) return {COLLAGE_LLD, ""};
  if (const auto bundled = FindBesideModules(kBundledLinker)) return {*bundled, bundled->parent_path()};
  return {access(COLLAGE_LD, X_OK) == 0 ? COLLAGE_LD : COLLAGE_LLD, ""};
}

int RunProgram(const std::vector<std::string>& words, const std::string& library_folder) {
  std::vector<std::string> owned = words;
  std::vector<std::string> lines = EnvironmentFor(library_folder);
  const std::vector<char*> argv = Pointers(owned);
  const std::vector<char*> environment = Pointers(lines);
  pid_t child = 0;
  int status = 1;
  const int code = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environment.data());
  if (code != 0) {
    throw Error(ErrorCategory::kUnavailable, fmt::format("cannot run '{}': {}", words[0], std::strerror(code)));
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<std::byte> Link(const llvm::SmallVector<char>& object, const Cpu& cpu) {
  const TemporaryFolder folder;
  const std::string input = (folder / "kernel.o").string();
  const std::string output = (folder / "kernel.so").string();
  WriteFile(input, {object.data(), object.size()});
  const Linker linker = LinkerFor(cpu);
  const std::vector<std::string> words{linker.program, "-shared", "-z", "noseparate-code", "-o", output, input};
  if (RunProgram(words, linker.library_folder) != 0) {
    throw Error(ErrorCategory::kInternal, "linking a kernel failed");
  }
  const std::string linked = ReadFile(output);
  const auto* bytes = reinterpret_cast<const std::byte*>(linked.data());
  return {bytes, bytes + linked.size()};
}

}  // namespace collage::native
