// compile_group.cc: calls the command, so that the user's process keeps its memory and threads.
#include "backends/onnxruntime/provider/compile_group.h"

#include <sys/wait.h>

#include "collage/runtime/c_api.h"
#include "support/dynamic_library.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/programs/run_tool.h"

namespace collage::onnxruntime {
namespace {

/// The command beside the libraries.
std::string Command() {
  for (const std::filesystem::path& folder : ModuleFolders()) {
    const std::filesystem::path command = folder.parent_path() / "bin/collage";
    if (std::filesystem::exists(command)) return command.string();
  }
  throw Error(ErrorCategory::kUnavailable, "there is no command 'collage' beside Collage's libraries", "",
              "install the whole of Collage");
}

/// Versions of everything that takes part in compiling.
const std::string& Versions() {
  static const std::string versions = RunTool({Command(), "version"}).output;
  return versions;
}

std::string DigestOf(const std::string& model, const std::string& weights_digest, const ProviderOptions& options) {
  Hasher hasher;
  hasher.Add(model);
  hasher.Add(weights_digest);
  for (const std::string& flag : options.flags) hasher.Add(flag);
  hasher.Add(Versions());
  return hasher.Hex();
}

/// Whether an executable is there, whole, and runs on this processor.
bool CanBeLoaded(const std::filesystem::path& path) {
  collage_executable* executable = nullptr;
  if (collage_executable_load(path.c_str(), &executable) != COLLAGE_OK) return false;
  collage_executable_release(executable);
  return true;
}

ErrorCategory CategoryOf(int status) {
  for (const ErrorCategory category : {ErrorCategory::kInput, ErrorCategory::kUnsupported, ErrorCategory::kUnavailable,
                                       ErrorCategory::kCorrupt, ErrorCategory::kResource}) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == ExitCode(category)) return category;
  }
  return ErrorCategory::kInternal;
}

}  // namespace

std::filesystem::path CompileGroup(const onnx::ModelProto& model, const ReadGraph& whole,
                                   const ProviderOptions& options,
                                   const std::function<void(const std::string& line)>& log) {
  if (options.cache_folder.empty()) {
    throw Error(ErrorCategory::kInput, "the folder of executables has no name", "cache_folder");
  }
  const std::string bytes = model.SerializeAsString();
  const std::filesystem::path kept = options.cache_folder / (DigestOf(bytes, whole.weights_digest, options) + ".clg");
  if (CanBeLoaded(kept)) return kept;
  std::error_code ignored;
  std::filesystem::create_directories(options.cache_folder, ignored);  // the command says what is wrong with it
  const std::filesystem::path file = whole.weights.parent_path() / "model.onnx";
  WriteFile(file, bytes);
  log(fmt::format("compiles {} nodes, once: the executable is kept as {}", model.graph().node_size(), kept.string()));
  std::vector<std::string> words{Command(), "compile", file.string(), "--quiet", "-o", kept.string()};
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  const ToolResult result = RunTool(words);
  if (result.status != 0) {
    // The command's own words: what, where, and what to do.
    throw Error(CategoryOf(result.status), "Collage cannot compile it\n" + result.output);
  }
  return kept;
}

}  // namespace collage::onnxruntime
