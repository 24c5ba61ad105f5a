// contender.h: a program that differs from others in the toolchain that computes its dynamic shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/compile_report.h"
#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "collage/vm/vm.h"

namespace collage {

/// One way to compute a program at any size: native kernels alone, or the largest sub-graphs that a toolchain for
/// symbolic sizes takes, and native kernels for the rest. Plans for known sizes are the same in all.
struct AnySizeContender {
  std::string toolchain;                     ///< name
  const Toolchain* symbolic = nullptr;       ///< null: native kernels alone
  IRModule module;                           ///< with Primitive functions for its parts
  std::vector<EvaluatedOperator> evaluated;  ///< operators without a kernel
  std::optional<vm::Executable> executable;  ///< once it is built
  double seconds = 0;                        ///< a run, as a geometric mean over sizes; 0: it was not timed
  std::string failure;                       ///< why it is out; empty if it is not
};

}  // namespace collage
