// options.h: what a session's options say to the provider.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backends/onnxruntime/provider/graph_reader.h"

namespace collage::onnxruntime {

/// The name by which sessions ask for the provider.
inline constexpr const char* kProviderName = "CollageExecutionProvider";

struct ProviderOptions {
  /// Folder of executables, by a digest of all that they are made of.
  std::filesystem::path cache_folder;
  /// How `collage compile` is called: settings and their values.
  std::vector<std::string> flags;
  /// Whether the session writes a model whose nodes hold executables (EPContext), where to, and whether they are in
  /// that file or beside it.
  bool writes_context = false;
  std::filesystem::path context_file;
  bool embeds = false;
};

/// Reads the options of the provider, "budget", "threads" and all other settings of `collage compile` by their names
/// without dashes in front, and "cache_folder". Values of settings that may be given several times are separated by
/// semicolons. Whether names and values are right is told by the first compilation.
ProviderOptions ReadOptions(const ProviderApi& api, const SessionOptions* session);

}  // namespace collage::onnxruntime
