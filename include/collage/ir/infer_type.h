// infer_type.h: type inference through the op table's relations.
#pragma once

#include "collage/ir/expr.h"
#include "collage/ir/module.h"

namespace collage {

/// Infers and stores the type of every node of `expr` that has none. Annotations are checked; variables without one
/// take the type of what they are bound to or used as, type parameters are found from argument types and from how the
/// result is used. A `?` accepts any size, branches of different sizes give `?`. Throws kInput naming the operator, its
/// argument types and the relation's reason, at the node's span, or the expression whose type nothing determines.
/// Linear in the number of nodes without type.
Type InferType(const Expr& expr);
/// As above, for expressions that call global functions of `module` or use its algebraic data types.
Type InferType(const Expr& expr, const IRModule& module);

/// Infers all functions of `module`; returns it for chaining. Functions that call each other in a cycle must be
/// annotated.
IRModule InferTypes(IRModule module);

}  // namespace collage
