// match_coverage.h: whether the clauses of a match handle every value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"

namespace collage {

/// A value that no pattern fits, as text: "Cons(_, Nil)"; nothing when all are handled. `module` defines the
/// constructors' types. The patterns must be of one type. Patterns that interlock so much that looking takes too long
/// count as complete.
std::optional<std::string> FindUnmatched(const std::vector<Clause>& clauses, const IRModule& module);

}  // namespace collage
