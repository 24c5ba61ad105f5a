// library.cc: opening the library, and how sessions are made.
#include "backends/onnxruntime/loader/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "backends/onnxruntime/library_file.h"
#include "support/machine.h"

namespace collage::onnxruntime {
namespace {

/// Opens the library. From 1.29 on it reports use and models to its vendor, unless it is told not to before it starts:
/// a process that it is opened in by us did not ask for that. A user's own setting stays.
void* Open(const std::string& hinted) {
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/0);
  std::string reasons;
  for (const std::filesystem::path& path : LibraryPaths(hinted)) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw Error(ErrorCategory::kUnavailable, "ONNX Runtime's library cannot be opened: " + reasons, "", kLibraryHint);
}

}  // namespace

Library& Library::Get(const std::string& hinted) {
  static std::mutex mutex;
  static Library* library = nullptr;
  const std::lock_guard lock(mutex);
  if (library == nullptr) library = new Library(hinted);
  return *library;
}

Library::Library(const std::string& hinted) {
  void* handle = Open(hinted);
  const auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (get_base == nullptr) {
    throw Error(ErrorCategory::kUnavailable, "ONNX Runtime's library has no OrtGetApiBase", "", kLibraryHint);
  }
  const ApiBase* base = get_base();
  version_ = base->version();
  api_ = base->get_api(kApiVersion);
  if (api_ == nullptr) {
    throw Error(ErrorCategory::kUnavailable, fmt::format("ONNX Runtime {} is too old", version_), "", kLibraryHint);
  }
  Check<CreateEnv>(ErrorCategory::kUnavailable, "start", kLogErrors, "collage", &env_);
  Check<CreateCpuMemoryInfo>(ErrorCategory::kUnavailable, "start", kDeviceAllocator, kMemTypeDefault, &memory_);
}

std::vector<std::pair<std::string, std::string>> SessionSettings(const std::vector<std::string>& features) {
  std::vector<std::pair<std::string, std::string>> settings{{"session.force_spinning_stop", "1"}};
  if (!HasVnni(features)) settings.emplace_back("session.x64quantprecision", "1");
  return settings;
}

SessionOptionsPtr MakeSessionOptions(const Library& library, int num_threads) {
  SessionOptions* options = nullptr;
  const auto check = [&]<typename Entry>(Entry, auto... args) {
    library.Check<Entry>(ErrorCategory::kInternal, "make a session", args...);
  };
  check(CreateSessionOptions{}, &options);
  SessionOptionsPtr owner(options, [&library](SessionOptions* dead) { library.Call<ReleaseSessionOptions>(dead); });
  check(SetIntraOpNumThreads{}, options, num_threads);
  check(SetInterOpNumThreads{}, options, 1);
  check(SetSessionGraphOptimizationLevel{}, options, kOptimizeAll);
  for (const auto& [key, value] : SessionSettings(ThisMachine().features)) {
    check(AddSessionConfigEntry{}, options, key.c_str(), value.c_str());
  }
  return owner;
}

}  // namespace collage::onnxruntime
