// library.h: ONNX Runtime's shared library, opened when it is first needed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/onnxruntime/loader/api_table.h"

namespace collage::onnxruntime {

/// The library and its one environment, which live as long as the process.
class Library : public ApiTable {
 public:
  /// Opens the first of `LibraryPaths` that can be opened, when it is first asked for. Throws kUnavailable with the
  /// reasons of the system's linker.
  static Library& Get(const std::string& hinted);

  const Env* env() const { return env_; }
  const MemoryInfo* memory() const { return memory_; }
  const std::string& version() const { return version_; }

 private:
  explicit Library(const std::string& hinted);

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
