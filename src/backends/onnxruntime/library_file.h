// library_file.h: where ONNX Runtime's shared library is. Looked up by file, since looking must not load it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage::onnxruntime {

/// How to get the library, for hints.
inline constexpr const char* kLibraryHint = "pip install onnxruntime, or name its library in $COLLAGE_ONNXRUNTIME";

/// The paths to try, in order: what $COLLAGE_ONNXRUNTIME names, and nothing else then; else the files that are there of
/// `hinted`, the wheel's and a bundle's; last the name by which the system finds its own.
std::vector<std::filesystem::path> LibraryPaths(const std::string& hinted);

/// The first file of these that is there, with nothing hinted, or why there is none.
Result<std::filesystem::path> FindLibrary();

/// The version that the file's name ends with, "1.31.1" of "libonnxruntime.so.1.31.1"; "unknown" where it has none.
std::string VersionOf(const std::filesystem::path& library);

/// The name of a copy of `library` in a bundle, where LibraryPaths finds it: its own if it begins as that of the
/// library.
std::string BundledName(const std::filesystem::path& library);

}  // namespace collage::onnxruntime
