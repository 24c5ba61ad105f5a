// unsearched.h: operators on dynamic shapes, which no search covers: options that would have no effect, operators that
// run by reference evaluation, and messages to the user.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/target/toolchain.h"

namespace collage {

/// An input of dynamic shape: its dimensions are numbers, names, or "?" if they have none.
struct OpenInput {
  std::string name;
  std::vector<std::string> dims;
};
/// Returns the parameters of @main that have dynamic shapes.
std::vector<OpenInput> FindOpenInputs(const IRModule& module);

/// The flags of the options that ask for something that only a search, or another toolchain than the native one, could
/// give: they differ from their defaults. Without --require, and without those that are followed at any size, since
/// programs of the toolchains `at_any_size` compete there.
std::vector<std::string> FlagsOfASearch(const CompileOptions& options,
                                        const std::vector<std::string>& at_any_size = {});

/// Throws kUnsupported, naming the flags, if `options` ask for a search although no part of the model has static
/// shapes: `inputs` are dynamic. `hint` says how to bind them.
void RefuseFlagsOfASearch(const CompileOptions& options, const std::vector<OpenInput>& inputs, const std::string& where,
                          const std::string& hint, const std::vector<std::string>& at_any_size = {});

/// Throws kUnavailable when a toolchain that `options` require has no kernel among those that were run for `report`, or
/// for one of its regions: its kernels failed, or it takes nothing of the model.
void CheckRequired(const CompileOptions& options, const CompileReport& report, const std::string& where);

/// Why kernels of `toolchain` failed, by `report` or one of its regions; empty if none did.
std::string WhyNothingRuns(const CompileReport& report, const std::string& toolchain);

/// The operators that a program evaluates as the reference does, but for those that only move a few numbers or give
/// tensors another shape, with the reason why `toolchain`, which may be null, has no kernel for the first of each.
std::vector<EvaluatedOperator> FindEvaluated(const IRModule& module, const Toolchain* toolchain);

/// Adds the operators of a function that cannot be a kernel because of `reason`.
void AddEvaluated(const Function& function, const std::string& reason, std::vector<EvaluatedOperator>& all);

/// "3 operators run by reference evaluation, slowly: 'unique' x 2 (REASON), …".
std::string EvaluatedText(const std::vector<EvaluatedOperator>& evaluated);

/// The warning that nothing of a model was searched: two lines, the last one `hint`. `at_any_size`: toolchains whose
/// programs for any size were compared.
std::string NothingSearchedText(const std::vector<OpenInput>& inputs, const std::vector<EvaluatedOperator>& evaluated,
                                const std::string& hint, const std::vector<std::string>& at_any_size = {});

/// "name some of them: --tune-at batch=<sizes>".
std::string NamingHint(const std::vector<OpenInput>& inputs);

/// "bind the sizes: --shape x=<batch>x3, or name some of them: --tune-at batch=<sizes>".
std::string BindingHint(const std::vector<OpenInput>& inputs);

}  // namespace collage
