// libraries.cc: where distributions put BLAS libraries. Builds without threads come first: this process has threads of
// its own, on which products are split.
#include "backends/blas/libraries.h"

#include <filesystem>

#include "support/dynamic_library.h"
#include "support/environment.h"

namespace collage::blas_toolchain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"openblas", "blis", "mkl"};

#if defined(__x86_64__)
#define COLLAGE_MULTIARCH "/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define COLLAGE_MULTIARCH "/usr/lib/aarch64-linux-gnu"
#else
#define COLLAGE_MULTIARCH "/usr/lib"
#endif

/// Folders of systems' packages, the multi-architecture one first.
const std::vector<std::string>& SystemFolders() {
  static const std::vector<std::string> folders{COLLAGE_MULTIARCH, "/usr/lib64", "/usr/lib", "/usr/local/lib"};
  return folders;
}

std::vector<std::string> Candidates(const std::string& name) {
  std::vector<std::string> paths;
  if (name == "mkl") {
    std::vector<std::string> folders;
    if (const auto root = GetEnvironment("MKLROOT")) folders = {*root + "/lib", *root + "/lib/intel64"};
    folders.insert(folders.end(), {"/opt/intel/oneapi/mkl/latest/lib", "/opt/intel/oneapi/mkl/latest/lib/intel64"});
    if (const auto wheels = FindInPackages("../..")) folders.push_back(*wheels);  // where the wheel `mkl` puts it
    folders.insert(folders.end(), SystemFolders().begin(), SystemFolders().end());
    for (const std::string& folder : folders) {
      for (const char* file : {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"})
        paths.push_back(folder + "/" + file);
    }
    return paths;
  }
  // OpenBLAS has locks in its build with threads only; the one with OpenMP asks more of that than the process's pool
  // offers.
  const bool blis = name == "blis";
  using Names = std::vector<std::string>;
  const Names kinds =
      blis ? Names{"/blis-serial", "/blis-pthread", "/blis-openmp", ""} : Names{"/openblas-pthread", ""};
  const Names files = blis ? Names{"/libblis.so.4"} : Names{"/libopenblasp.so.0", "/libopenblas.so.0"};
  for (const std::string& kind : kinds) {
    for (const std::string& folder : SystemFolders()) {
      for (const std::string& file : files) paths.push_back(folder + kind + file);
    }
  }
  return paths;
}

/// Beside the modules, under its full name: "libopenblasp-r0.3.21.so".
std::vector<std::string> Bundled(const std::string& name) {
  std::vector<std::string> paths;
  for (const fs::path& folder : ModuleFolders()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().starts_with("lib" + name)) paths.push_back(entry.path());
    }
  }
  return paths;
}

/// "openblasp-r0.3.21 of openblas-pthread".
std::string VersionOf(const fs::path& path) {
  std::error_code ignored;
  const fs::path real = fs::canonical(path, ignored);
  std::string name = real.filename().string().substr(sizeof("lib") - 1);
  if (const size_t suffix = name.find(".so"); suffix != name.npos) name.erase(suffix, sizeof(".so") - 1);
  const std::string folder = real.parent_path().filename().string();
  const bool tells = folder.starts_with("openblas-") || folder.starts_with("blis-");
  return tells ? name + " of " + folder : name;
}

}  // namespace

std::span<const char* const> LibraryNames() { return kNames; }

std::vector<Library> FindLibraries() {
  std::vector<Library> found;
  for (const char* name : kNames) {
    std::vector<std::string> paths = Bundled(name);
    const std::vector<std::string> installed = Candidates(name);
    paths.insert(paths.end(), installed.begin(), installed.end());
    for (const std::string& path : paths) {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      found.push_back({name, path, VersionOf(path)});
      break;
    }
  }
  return found;
}

}  // namespace collage::blas_toolchain
