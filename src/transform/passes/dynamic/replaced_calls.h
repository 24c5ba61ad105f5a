// replaced_calls.h: rewrites calls in all functions of a module.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "collage/ir/module.h"

namespace collage {

/// Returns `module`, typed, in whose functions calls of operators are what `replace` returns for them: it gets each
/// call as it was and with replaced arguments, typed, and returns null where it stays. The functions that are in
/// `added` in the end become part of the module. Functions that are kernels already are not entered.
IRModule WithReplacedCalls(const IRModule& module,
                           const std::function<Expr(const CallNode& original, const CallNode& call)>& replace,
                           const std::map<std::string, Function>& added = {});

}  // namespace collage
