// open_model_check.h: holds a model imported with symbolic sizes against imports of the same file with bound sizes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/frontend/onnx.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// Shapes of a model's inputs, by name: one assignment of sizes to its symbols.
using InputShapes = std::map<std::string, Shape>;

/// The engine that runs the import with symbolic sizes.
enum class OpenEngine {
  kInterpreter,  ///< the reference evaluation
  kBytecode,     ///< the virtual machine, operators of dynamic shapes in native kernels
};

/// The outcome of a check.
struct OpenVerdict {
  enum class Kind {
    kRight,    ///< equal to the bound import at all sizes that this one takes
    kRefused,  ///< the import says that it cannot keep the sizes symbolic
    kWrong,    ///< other results, an internal error, or an error at sizes that the bound import takes
  };
  Kind kind = Kind::kRight;
  std::string text;     ///< why it is refused, or which results are wrong at which sizes
  int num_equal = 0;    ///< assignments at which both give the same results
  int num_refused = 0;  ///< assignments that both refuse
  int num_lenient = 0;  ///< assignments that only the bound import refuses
};

struct OpenCheckOptions {
  OpenEngine engine = OpenEngine::kInterpreter;
  /// Inputs whose values both imports are given.
  std::map<std::string, Tensor> constants;
  /// Makes an input; by default of random numbers, integers in [0, 7].
  std::function<Tensor(const std::string& name, const Shape& shape, DataType dtype)> make_input;
};

/// Imports the model at `path` once with symbolic sizes and, for each of `sizes`, once with these bound, and compares
/// what both compute of the same inputs: numbers of results, dtypes, shapes and elements. Never throws Error.
OpenVerdict CheckOpenModel(const std::filesystem::path& path, const std::vector<InputShapes>& sizes,
                           const OpenCheckOptions& options = {});

/// "x=(1, 3, 8), y=(4)".
std::string ToString(const InputShapes& shapes);

}  // namespace collage
