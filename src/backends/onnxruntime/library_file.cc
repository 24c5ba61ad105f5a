// library_file.cc: the places, and the version in a file's name.
#include "backends/onnxruntime/library_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "support/dynamic_library.h"
#include "support/environment.h"

namespace collage::onnxruntime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "libonnxruntime.so";
/// The soname of releases, by which the system's linker looks.
constexpr const char* kOfSystem = "libonnxruntime.so.1";

std::optional<std::string> Chosen() {
  const std::optional<std::string> chosen = GetEnvironment("COLLAGE_ONNXRUNTIME");
  return chosen && !chosen->empty() ? chosen : std::nullopt;
}

/// Adds the files in `folder` that are called as the library is, by name; none where there is no such folder.
void AddLibraries(const fs::path& folder, std::vector<fs::path>& paths) {
  const auto first = static_cast<ptrdiff_t>(paths.size());
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored)) {
    if (file.path().filename().string().starts_with(kName)) paths.push_back(file.path());
  }
  std::sort(paths.begin() + first, paths.end());
}

}  // namespace

std::vector<fs::path> LibraryPaths(const std::string& hinted) {
  if (const auto chosen = Chosen()) return {*chosen};
  std::vector<fs::path> paths;
  std::error_code ignored;
  if (!hinted.empty() && fs::exists(hinted, ignored)) paths.emplace_back(hinted);
  if (const auto wheel = FindInPackages("onnxruntime/capi")) AddLibraries(*wheel, paths);
  for (const fs::path& folder : ModuleFolders()) AddLibraries(folder, paths);
  paths.emplace_back(kOfSystem);
  return paths;
}

Result<fs::path> FindLibrary() {
  const fs::path first = LibraryPaths("").front();
  std::error_code ignored;
  if (Chosen() && !fs::exists(first, ignored)) {
    return Reason{fmt::format("its library '{}' is not there", first.string()), "onnxruntime"};
  }
  if (first == kOfSystem) return Reason{"the wheel 'onnxruntime' is not installed", "onnxruntime"};
  return first;
}

std::string VersionOf(const fs::path& library) {
  constexpr std::string_view kSuffix = ".so.";
  std::error_code ignored;
  const std::string name = fs::weakly_canonical(library, ignored).filename().string();
  const size_t suffix = name.find(kSuffix);
  return suffix == name.npos ? "unknown" : name.substr(suffix + kSuffix.size());
}

std::string BundledName(const fs::path& library) {
  const std::string name = library.filename().string();
  return name.starts_with(kName) ? name : std::string(kName);
}

}  // namespace collage::onnxruntime
