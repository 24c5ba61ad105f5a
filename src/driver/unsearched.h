// unsearched.h: programs whose operators' sizes only a run knows: which options could have no effect, which operators
// run by reference evaluation, and what the user is told.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/target/toolchain.h"

namespace collage {

/// An input whose sizes only a run knows: its dimensions are numbers, names, or "?" where they have none.
struct OpenInput {
  std::string name;
  std::vector<std::string> dims;
};
/// The parameters of @main whose sizes are open.
std::vector<OpenInput> FindOpenInputs(const IRModule& module);

/// The flags of the options that ask for something that only a search, or another toolchain than the native one, could
/// give: they differ from their defaults. Without --require.
std::vector<std::string> FlagsOfASearch(const CompileOptions& options);

/// Throws kUnsupported, naming the flags, when `options` ask for a search of a model none of whose parts has known
/// sizes: `inputs` leave them open. `hint` says how to bind them.
void RefuseFlagsOfASearch(const CompileOptions& options, const std::vector<OpenInput>& inputs, const std::string& where,
                          const std::string& hint);

/// Throws kUnavailable when a toolchain that `options` require has no kernel among those that were run for `report`, or
/// for one of its regions: its kernels failed, or it takes nothing of the model.
void CheckRequired(const CompileOptions& options, const CompileReport& report, const std::string& where);

/// The operators that a program evaluates as the reference does, but for those that only move a few numbers or give
/// tensors another shape, with the reason why `toolchain`, which may be null, has no kernel for the first of each.
std::vector<EvaluatedOperator> FindEvaluated(const IRModule& module, const Toolchain* toolchain);

/// Adds the operators of a function that `reason` keeps from being a kernel.
void AddEvaluated(const Function& function, const std::string& reason, std::vector<EvaluatedOperator>& all);

/// "3 operators run by reference evaluation, slowly: 'unique' x 2 (REASON), …".
std::string EvaluatedText(const std::vector<EvaluatedOperator>& evaluated);

/// The warning that nothing of a model was searched: two lines, the last one `hint`.
std::string NothingSearchedText(const std::vector<OpenInput>& inputs, const std::vector<EvaluatedOperator>& evaluated,
                                const std::string& hint);

/// "bind the sizes: --shape x=<batch>x3".
std::string BindingHint(const std::vector<OpenInput>& inputs);

}  // namespace collage
