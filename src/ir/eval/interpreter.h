// interpreter.h: evaluates the whole language, slowly and plainly: let, if, match, closures, recursion, references,
// data.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/op.h"
#include "collage/ir/value.h"
#include "ir/eval/evaluate.h"

namespace collage {

struct InterpretOptions {
  /// Calls (and branches inside expressions) that may be open at once; beyond it evaluation fails with kResource. Calls
  /// in tail position take no room.
  size_t max_depth = 100000;
  /// How operators are evaluated. The seed of random rounding is another one for every call; calls of nothing but
  /// constants do not round at random.
  EvaluateOptions evaluate = {};
};

/// Calls function `name` of `module` with `args` and returns its value.
///
/// Strict: a call's callee and arguments are evaluated from left to right before the call, a let's value before its
/// body. Shared nodes are evaluated once per call of the function that they belong to (see ScopeAnalysis), and only
/// when they are needed. Operators are computed by their reference evaluation on the shapes that arguments really have,
/// so that `?` dimensions need nothing special. Functions in the result can be looked at but not called.
///
/// Throws kInput when the function is unknown, an argument does not fit its annotation, an operator refuses its
/// arguments or no clause of a match fits; kResource when calls nest deeper than `options.max_depth`.
Value Interpret(const IRModule& module, std::string_view name, std::vector<Value> args,
                const InterpretOptions& options = {});

/// Computes one operator on values by its reference evaluation, for the shapes that `args` have. Throws kInput when it
/// refuses them.
Value ApplyOp(const OpDef& op, const Attrs& attrs, const std::vector<Value>& args, const EvaluateOptions& options = {});

}  // namespace collage
