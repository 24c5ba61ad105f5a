// library.h: ONNX Runtime's shared library, opened when it is first needed.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/onnxruntime/loader/c_api.h"
#include "collage/support/error.h"

namespace collage::onnxruntime {

/// The library and its one environment, which live as long as the process.
class Library {
 public:
  /// Opens it when it is first asked for: $COLLAGE_ONNXRUNTIME, `hinted`, the one of the environment that this was
  /// built with, the system's. Throws kUnavailable with the loader's reason.
  static Library& Get(const std::string& hinted);

  template <typename Entry, typename... Args>
  auto Call(Args... args) const {
    return Entry::Of(api_)(args...);
  }

  /// Throws `category` when ONNX Runtime reports an error.
  template <typename Entry, typename... Args>
  void Check(ErrorCategory category, const char* doing, Args... args) const {
    Status* status = Call<Entry>(args...);
    if (status == nullptr) return;
    const std::string message = Call<GetErrorMessage>(static_cast<const Status*>(status));
    Call<ReleaseStatus>(status);
    throw Error(category, fmt::format("ONNX Runtime cannot {}: {}", doing, message));
  }

  const Env* env() const { return env_; }
  const MemoryInfo* memory() const { return memory_; }
  const std::string& version() const { return version_; }

 private:
  explicit Library(const std::string& hinted);

  const void* const* api_ = nullptr;
  Env* env_ = nullptr;
  MemoryInfo* memory_ = nullptr;
  std::string version_;
};

/// Settings of a session by their keys, for a processor with `features` (MachineInfo). Threads do not spin between
/// runs, since they must not take processors from other kernels' threads. Without VNNI instructions, the products of
/// bytes that ONNX Runtime would take first are added up in 16 bits, which overflow: there it is asked for those that
/// are exact. With them it is not, since it would then do without them.
std::vector<std::pair<std::string, std::string>> SessionSettings(const std::vector<std::string>& features);

/// Options of the sessions of kernels: all optimisations, a number of threads, `SessionSettings` of this machine;
/// otherwise ONNX Runtime's defaults.
using SessionOptionsPtr = std::unique_ptr<SessionOptions, std::function<void(SessionOptions*)>>;
SessionOptionsPtr MakeSessionOptions(const Library& library, int num_threads);

}  // namespace collage::onnxruntime
