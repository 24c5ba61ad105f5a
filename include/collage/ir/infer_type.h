// infer_type.h: type inference through the op table's relations.
#pragma once

#include "collage/ir/expr.h"
#include "collage/ir/module.h"

namespace collage {

/// Infers and stores the type of every node of `expr` that has none; variables need annotations. Throws kInput naming the
/// operator, its argument types and the relation's reason, at the node's span.
Type InferType(const Expr& expr);

/// Infers all functions of `module`; returns it for chaining.
IRModule InferTypes(IRModule module);

}  // namespace collage
