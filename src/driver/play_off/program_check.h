// program_check.h: whether a program, bytecode with kernels in it, computes the results of its model.
//
// A plan is checked in the play-off that it wins. A program consists of many plans, of kernels for dynamic shapes, and
// of code that the import made for dynamic sizes. So it is run as a whole, at several sizes if it takes any, in a
// worker that may crash or hang. Its results are compared with those of the model with these sizes bound, which has no
// dynamic shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/vm/vm.h"
#include "worker/worker.h"

namespace collage {

/// The model whose inputs have just these shapes, in the order of the parameters. Throws where it has no meaning for
/// them.
using BindShapes = std::function<IRModule(const std::vector<Shape>& shapes)>;

struct ProgramCheckOptions {
  int num_threads = 1;
  WorkerLimits limits;
  /// Null: the program is held against the interpretation of its own module.
  BindShapes bind;
  /// Shapes for random inputs beside those that are tried anyway, each of all parameters, in order.
  std::vector<std::vector<Shape>> shapes;
  /// How far results may be off, relative to the largest of each; nothing: by what rounding leaves open.
  std::optional<double> max_error;
  /// Inputs to run the program on beside random ones, each in the order of the parameters.
  std::vector<std::vector<Tensor>> inputs;
};

struct ProgramCheckResult {
  std::vector<std::string> sizes;          ///< at which it was right: "x=2x33, y=2"
  std::vector<std::vector<Shape>> shapes;  ///< these sizes as shapes of all parameters, in order
  double max_error = 0;                    ///< largest of all results, each relative to its largest element
  std::string not_verified;                ///< why it was run at no sizes; empty when it was
};

/// Runs `program`, which `module` was compiled to, and compares all results. Throws kInternal where one is wrong, which
/// names the result and the sizes. Sizes and inputs that the model refuses are replaced by others.
ProgramCheckResult CheckProgram(const IRModule& module, const vm::Executable& program,
                                const ProgramCheckOptions& options);

/// Shapes to try for the parameters of `function`, whose types are tensors: one where all sizes are known. The first
/// come first: batches and lengths that are small, odd, one, equal, and larger than what models cut at.
std::vector<std::vector<Shape>> ShapesToTry(const Function& function);

}  // namespace collage
