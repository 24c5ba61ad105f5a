// engine.h: an engine of TensorRT as a kernel's blob, and how the library's module is asked for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/support/result.h"

namespace collage::tensorrt {

/// A tensor at a kernel's boundary.
struct Port {
  std::string name;  ///< in the model: "input_0", "output_0"
  std::string dtype;
  std::vector<int64_t> shape;
};

struct Engine {
  std::string module;        ///< Python's: "tensorrt", "tensorrt_rtx"
  std::string version;       ///< who made it, and reads it: "TensorRT 10.13.2.6"
  std::string architecture;  ///< GPUs that it is for: "sm_90"
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::string bytes;  ///< the library's own
};

std::vector<std::byte> ToBlob(const Engine& engine);
/// Throws kCorrupt.
Engine EngineFrom(std::span<const std::byte> blob);
/// The fields but for `bytes`, as JSON: what the module's Python is told of an engine.
std::string Describe(const Engine& engine);

/// The TensorRT that a Python has.
struct Library {
  std::string module;
  std::string version;
  std::vector<std::string> architectures;  ///< GPUs that it builds engines for without having them
};

/// C symbol `collage_tensorrt_look` of the library's module: what the Python has that would be used, as a text for
/// LibraryFrom. Imports the library in a process of its own. `module` is the one wanted; empty: the first one there is.
/// Throws kUnavailable where there is no Python.
using LookFn = void(const std::string& module, std::string& text);
/// The reason is why it cannot be used.
Result<Library> LibraryFrom(const std::string& text);

/// Which engine is wanted.
struct BuildRequest {
  std::string module;
  std::string architecture;  ///< such as "sm_89"; empty: that of the GPU which is here
  std::string here;          ///< the architecture of that; empty where there is none
  bool allows_tf32 = false;
  int level = -1;       ///< how much effort the library spends, 0 to 5; -1: as much as it thinks right
  std::string timings;  ///< the file of its timing cache; empty: none
};

/// C symbol `collage_tensorrt_build`: the library's bytes for an ONNX model.
using BuildFn = void(std::string_view model, const BuildRequest& request, Result<std::string>& bytes);

}  // namespace collage::tensorrt
