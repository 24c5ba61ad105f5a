// pass.h: what a pass is: a named transformation of a module.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// Transforms a module. May rely on a typed module and need not leave one: RunPass infers types again.
using ModulePass = std::function<IRModule(IRModule module, const PassContext& context)>;
/// Transforms one function; `module` gives the definitions that it refers to.
using FunctionPass =
    std::function<Function(const Function& function, const IRModule& module, const PassContext& context)>;

/// A named transformation: one row of the table in src/pipeline/pass_table.cc.
struct Pass {
  std::string name;
  int opt_level = 0;                  ///< `Sequential` leaves it out at lower levels
  std::vector<std::string> required;  ///< passes that `Sequential` runs first
  std::string summary;
  ModulePass run;
};

/// Applies `pass` to every global function, except those that are a toolchain's (attribute Compiler) and those with
/// attribute SkipOptimization.
ModulePass OnEachFunction(FunctionPass pass);

}  // namespace collage
